"""One spectrum out of a chunk (slow)."""
import os
import tempfile

CACHE = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "one-spectrum-out-of-a-chunk")


def save(path, write):
    """Makes the data once: into a temporary name first, so that a run cut short leaves nothing half done."""
    os.makedirs(CACHE, exist_ok=True)
    part = os.path.join(os.path.dirname(path), f"part{os.getpid()}-" + os.path.basename(path))
    write(part)
    os.rename(part, path)


import time

import h5py
import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

N = 16_384
WIDTH = 512
DRAWS = 2_600
EPOCHS = 1


def prepare():
    path = os.path.join(CACHE, "spectra.h5")
    if not os.path.exists(path):
        def write(p):
            rng = np.random.default_rng(0)
            x = rng.integers(0, 60, (N, WIDTH)).astype("f4")
            with h5py.File(p, "w") as f:
                f.create_dataset("wide", data=x, chunks=(1024, WIDTH), compression="gzip")
                f.create_dataset("row", data=x, chunks=(1, WIDTH), compression="gzip")
        save(path, write)


class Spectra(Dataset):
    def __init__(self, field):
        self.field, self.h = field, None

    def __len__(self):
        return N

    def __getitems__(self, rows):
        if self.h is None:
            self.h = h5py.File(os.path.join(CACHE, "spectra.h5"), "r")[self.field]
        return [torch.from_numpy(self.h[i]) for i in rows]


def sampler():
    g = torch.Generator().manual_seed(0)
    return RandomSampler(range(N), num_samples=DRAWS, replacement=True, generator=g)


def consume(batch):
    time.sleep(0.03)


def make_loader():
    return DataLoader(Spectra("wide"), batch_sampler=BatchSampler(sampler(), 20, False))
