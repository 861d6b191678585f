"""runs of 500 neighbouring records are read at once and shuffled"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "record-seek-cold")

import random

import torch
from torch.utils.data import DataLoader, IterableDataset

FILE = os.path.join(ROOT, "records.dat")
RECORD, COUNT, N = 4_096, 120_000, 10_000

def evict(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def prepare():
    os.makedirs(ROOT, exist_ok=True)
    if not os.path.exists(FILE):
        with open(FILE + ".new", "wb") as f:
            for _ in range(COUNT // 4_000):
                f.write(os.urandom(RECORD * 4_000))
            f.flush()
            os.fsync(f.fileno())
        os.rename(FILE + ".new", FILE)
    evict(FILE)


class Records(IterableDataset):
    def __init__(self):
        self.file = open(FILE, "rb")

    def __iter__(self):
        for run in random.Random(5).sample(range(COUNT // 500), N // 500):
            self.file.seek(run * 500 * RECORD)
            block = self.file.read(500 * RECORD)
            for k in random.sample(range(500), 500):
                yield torch.frombuffer(bytearray(block[k * RECORD : (k + 1) * RECORD]), dtype=torch.uint8)


def make_loader():
    return DataLoader(Records(), batch_size=50)
