"""Knowledge-graph model: after an out-of-memory crash the author frees everything after each step."""
import time

import torch
from accelerate.utils import release_memory
from torch.utils.data import DataLoader, Dataset

TRIPLES = []
ENTITIES = 400_000
BATCHES = 60


def prepare():
    if not TRIPLES:
        for i in range(ENTITIES):
            TRIPLES.append([i, (i * 7) % ENTITIES, str(i)])   # head, tail, relation text


class Triples(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        head, tail, _ = TRIPLES[i * 31 % ENTITIES]
        return head, tail


def make_loader():
    return DataLoader(Triples(BATCHES * 16), batch_size=16)


def consume(batch):
    head, tail = batch
    time.sleep(0.015)                                # forward and backward on the device
    out = torch.stack([head, tail])
    out, head, tail = release_memory(out, head, tail)
