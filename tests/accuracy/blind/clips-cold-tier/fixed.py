"""Clips from a store: most lie in the warm tier, now and then one has to come from the cold one."""
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

WARM, COLD = 0.004, 0.5


class Store:
    def __init__(self, seed):
        self.cold = np.random.default_rng(seed).random(320) < 0.03

    def get(self, key):
        time.sleep(COLD if self.cold[key] else WARM)
        return np.full((3, 8, 16, 16), key % 255, dtype=np.uint8)


class ClipDataset(Dataset):
    def __init__(self, store):
        self.store = store

    def __len__(self):
        return len(self.store.cold)

    def __getitem__(self, key):
        return {"clip": torch.from_numpy(self.store.get(key)), "key": key}


def make_loader():
    return DataLoader(ClipDataset(Store(4)), batch_size=4, num_workers=4, in_order=False)


def consume(batch):
    time.sleep(0.002)
