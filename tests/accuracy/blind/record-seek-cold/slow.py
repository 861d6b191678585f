"""4 kB records at random places of a large cold file, one at a time"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "record-seek-cold")

import random

import torch
from torch.utils.data import DataLoader, Dataset

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


class Records(Dataset):
    def __init__(self):
        self.file = open(FILE, "rb")
        self.order = random.Random(5).sample(range(COUNT), N)

    def __len__(self):
        return N

    def __getitem__(self, i):
        self.file.seek(self.order[i] * RECORD)
        return torch.frombuffer(bytearray(self.file.read(RECORD)), dtype=torch.uint8)


def make_loader():
    return DataLoader(Records(), batch_size=50)
