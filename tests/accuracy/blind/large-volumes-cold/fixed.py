"""stored as bytes, a quarter of the size"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "large-volumes-cold")

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

N = 64


def volume(i, kind):
    return os.path.join(ROOT, f"{i:03d}-{kind}.npy")


def evict(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def prepare():
    os.makedirs(ROOT, exist_ok=True)
    rng = np.random.default_rng(0)
    for i in range(N):
        if not os.path.exists(volume(i, "u1")):
            small = rng.integers(0, 255, (64, 256, 256), dtype=np.uint8)
            np.save(volume(i, "f4"), small.astype(np.float32))
            np.save(volume(i, "u1"), small)
    for i in range(N):
        evict(volume(i, "f4"))
        evict(volume(i, "u1"))


class Scans(Dataset):
    def __len__(self):
        return N

    def __getitem__(self, i):
        return torch.from_numpy(np.load(volume(i, "u1")))


def make_loader():
    return DataLoader(Scans(), batch_size=2)
