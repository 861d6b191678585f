"""Batches of similar length; the sampler asks every text for its length at the start of each pass."""
import random
import re

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, Sampler

EPOCHS = 3
MAX_BATCHES = 30
WORD = re.compile(r"\w+|[^\w\s]")


class Corpus(Dataset):
    def __init__(self, n=30_000):
        draw = random.Random(0)
        words = ["loader", "waits", "for", "the", "data,", "again", "and", "again."]
        self.texts = [" ".join(draw.choices(words, k=draw.randint(20, 120))) for _ in range(n)]
        self.lengths = [text.count(" ") for text in self.texts]  # near enough to sort by

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return torch.tensor([hash(w) % 30_000 for w in WORD.findall(self.texts[i])])


class LengthBuckets(Sampler):
    def __init__(self, data, size):
        self.data, self.size = data, size

    def __iter__(self):
        order = sorted(range(len(self.data)), key=self.data.lengths.__getitem__)
        groups = [order[k : k + self.size] for k in range(0, len(order), self.size)]
        random.Random(1).shuffle(groups)
        yield from groups


def make_loader():
    data = Corpus()
    return DataLoader(
        data, batch_sampler=LengthBuckets(data, 32), collate_fn=lambda rows: pad_sequence(rows, batch_first=True)
    )
