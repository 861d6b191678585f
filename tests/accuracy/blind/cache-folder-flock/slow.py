"""A cache folder guarded by one lock file: every read goes through it, decompression too."""
import contextlib
import fcntl
import os
import tempfile
import zlib

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

FOLDER = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "cache-folder-flock", "cache")
N = 64


def prepare():
    os.makedirs(FOLDER, exist_ok=True)
    rng = np.random.default_rng(0)
    for k in range(N):
        path = os.path.join(FOLDER, f"{k:03d}.z")
        if not os.path.exists(path):
            with open(path, "wb") as out:
                out.write(zlib.compress(rng.integers(0, 40, 700_000, dtype=np.uint8).tobytes(), 3))


@contextlib.contextmanager
def guarded(folder):
    with open(os.path.join(folder, "lock"), "a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            yield folder
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)


class Cached(Dataset):
    def __len__(self):
        return 800

    def __getitem__(self, i):
        with guarded(FOLDER) as folder:
            with open(os.path.join(folder, f"{i % N:03d}.z"), "rb") as packed:
                raw = zlib.decompress(packed.read())
        return torch.frombuffer(bytearray(raw[:20_000]), dtype=torch.uint8)


def make_loader():
    return DataLoader(Cached(), batch_size=8, num_workers=3)
