"""The same numbers in one array: nothing to count, nothing to copy."""
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


MAX_BATCHES = 140


class Annotated(Dataset):
    def __init__(self, n=60_000):
        self.boxes = np.random.default_rng(0).random((n, 4, 4), dtype=np.float32)

    def __len__(self):
        return len(self.boxes)

    def __getitem__(self, i):
        return torch.from_numpy(self.boxes[i]), 19


def make_loader():
    order = torch.Generator().manual_seed(0)
    return DataLoader(Annotated(), batch_size=512, shuffle=True, num_workers=4, generator=order)


def consume(batch):
    a = batch[0].reshape(-1, 4)
    for _ in range(6):
        (a @ a.T).sum().item()
