"""Floats made in the worker (slow)."""
import os
import tempfile

CACHE = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "floats-made-in-the-worker")


def save(path, write):
    """Makes the data once: into a temporary name first, so that a run cut short leaves nothing half done."""
    os.makedirs(CACHE, exist_ok=True)
    part = os.path.join(os.path.dirname(path), f"part{os.getpid()}-" + os.path.basename(path))
    write(part)
    os.rename(part, path)


import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

N = 3_200
SIDE = 640
EPOCHS = 1


def prepare():
    path = os.path.join(CACHE, "frames.npy")
    if not os.path.exists(path):
        rng = np.random.default_rng(0)
        save(path, lambda p: np.save(p, rng.integers(0, 255, (48, 3, SIDE, SIDE), dtype=np.uint8)))


def consume(batch):          # the device would widen and divide here
    assert batch.shape[1] == 3
    time.sleep(0.02)


class Frames(Dataset):
    def __init__(self):
        self.x = np.load(os.path.join(CACHE, "frames.npy"))

    def __len__(self):
        return N

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i % 48]).float().div_(255)


def make_loader():
    return DataLoader(Frames(), batch_size=16, num_workers=2)
