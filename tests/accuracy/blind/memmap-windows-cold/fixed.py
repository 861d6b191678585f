"""large blocks are read one after the other, windows are drawn from the block in memory"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "memmap-windows-cold")

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset

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


class Windows(IterableDataset):
    def __iter__(self):
        rng = np.random.default_rng(7)
        blocks = 8
        with open(FILE, "rb") as f:
            for b in rng.permutation(MB // 4)[:blocks]:
                f.seek(int(b) * (4 << 20))
                tokens = np.frombuffer(f.read(4 << 20), np.uint16)
                for at in rng.integers(0, len(tokens) - WINDOW - 1, N // blocks):
                    x = torch.from_numpy(tokens[at : at + WINDOW + 1].astype(np.int64))
                    yield x[:-1], x[1:]


def make_loader():
    return DataLoader(Windows(), batch_size=32)
