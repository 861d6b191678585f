"""random windows of a memory-mapped token file that is not in memory"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "memmap-windows-cold")

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

FILE = os.path.join(ROOT, "train.bin")
MB, WINDOW, N = 512, 512, 6_400

def evict(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def prepare():
    os.makedirs(ROOT, exist_ok=True)
    if not os.path.exists(FILE):
        rng = np.random.default_rng(0)
        with open(FILE + ".new", "wb") as f:
            for _ in range(MB // 16):
                f.write(rng.bytes(16 << 20))
            f.flush()
            os.fsync(f.fileno())
        os.rename(FILE + ".new", FILE)
    evict(FILE)


class Windows(Dataset):
    def __init__(self):
        self.tokens = np.memmap(FILE, np.uint16, "r")
        self.starts = np.random.default_rng(7).integers(0, len(self.tokens) - WINDOW - 1, N)

    def __len__(self):
        return N

    def __getitem__(self, i):
        at = self.starts[i]
        x = torch.from_numpy(self.tokens[at : at + WINDOW + 1].astype(np.int64))
        return x[:-1], x[1:]


def make_loader():
    return DataLoader(Windows(), batch_size=32)
