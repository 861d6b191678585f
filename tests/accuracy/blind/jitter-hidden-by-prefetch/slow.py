"""Jitter hidden by prefetch (slow)."""
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

EPOCHS = 1


class Ocean(Dataset):
    """Some days come from a slower place than others."""

    def __init__(self, late):
        self.late = late

    def __len__(self):
        return 400

    def __getitem__(self, day):
        if day % 16 == 5:
            time.sleep(self.late)
        rng = np.random.default_rng(day)
        field = rng.standard_normal((64, 90)).astype(np.float32)
        return torch.from_numpy(field - field.mean())


def consume(batch):
    time.sleep(0.16)


def make_loader():
    return DataLoader(Ocean(0.06), batch_size=4, num_workers=2, prefetch_factor=3)
