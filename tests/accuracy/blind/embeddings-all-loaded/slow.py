"""Reads the whole table of embeddings into memory as tensors, and trains on a small part of the rows."""
import os
import tempfile

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, SubsetRandomSampler

PATH = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "embeddings-all-loaded", "embeddings.npy")
ROWS, WIDTH = 300_000, 512


def prepare():
    os.makedirs(os.path.dirname(PATH), exist_ok=True)
    if not os.path.exists(PATH):
        out = np.lib.format.open_memmap(PATH, "w+", np.float32, (ROWS, WIDTH))
        for start in range(0, ROWS, 50_000):
            out[start : start + 50_000] = np.random.default_rng(start).random((50_000, WIDTH), dtype=np.float32)
        out.flush()


class Embeddings(Dataset):
    def __init__(self, path):
        self.rows = list(torch.from_numpy(np.load(path)).unbind(0))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i], i % 10


def make_loader():
    chosen = np.random.default_rng(0).choice(ROWS, 12_800, replace=False).tolist()
    return DataLoader(Embeddings(PATH), batch_size=64, sampler=SubsetRandomSampler(chosen))


def consume(batch):
    (batch[0] @ batch[0].T).sum().item()
