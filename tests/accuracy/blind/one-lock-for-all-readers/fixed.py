"""One lock for all readers (fixed)."""
import os
import tempfile

CACHE = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "one-lock-for-all-readers")


def save(path, write):
    """Makes the data once: into a temporary name first, so that a run cut short leaves nothing half done."""
    os.makedirs(CACHE, exist_ok=True)
    part = os.path.join(os.path.dirname(path), f"part{os.getpid()}-" + os.path.basename(path))
    write(part)
    os.rename(part, path)


import multiprocessing
import time
from contextlib import nullcontext

import h5py
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

N = 1_300
EPOCHS = 1


def prepare():
    path = os.path.join(CACHE, "cells.h5")
    if not os.path.exists(path):
        def write(p):
            with h5py.File(p, "w") as f:
                f["x"] = np.random.default_rng(0).standard_normal((N, 64, 64)).astype("f4")
        save(path, write)


class Cells(Dataset):
    def __init__(self, lock):
        self.lock, self.h = lock, None

    def __len__(self):
        return N

    def __getitem__(self, i):
        with self.lock:
            if self.h is None:
                self.h = h5py.File(os.path.join(CACHE, "cells.h5"), "r")["x"]
            time.sleep(0.012)          # the file lies on a share
            x = self.h[i]
        return torch.from_numpy(x - x.mean())


def consume(batch):
    time.sleep(0.03)


def make_loader():
    return DataLoader(Cells(nullcontext()), batch_size=10, num_workers=4)
