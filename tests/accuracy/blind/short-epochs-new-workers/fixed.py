"""Short epochs new workers (fixed)."""
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

EPOCHS = 85


class FewShot(Dataset):
    """A dozen episodes is an epoch here."""

    def __init__(self):
        self.support = np.random.default_rng(0).standard_normal((600, 3, 84, 84)).astype(np.float32)

    def __len__(self):
        return 12

    def __getitem__(self, episode):
        pick = np.random.default_rng(episode).integers(0, 600, 5)
        return torch.from_numpy(self.support[pick])


def consume(batch):
    time.sleep(0.01)


def make_loader():
    return DataLoader(FewShot(), batch_size=2, num_workers=6, persistent_workers=True)
