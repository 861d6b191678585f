"""Zip directory read again (fixed)."""
import os
import tempfile

CACHE = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "zip-directory-read-again")


def save(path, write):
    """Makes the data once: into a temporary name first, so that a run cut short leaves nothing half done."""
    os.makedirs(CACHE, exist_ok=True)
    part = os.path.join(os.path.dirname(path), f"part{os.getpid()}-" + os.path.basename(path))
    write(part)
    os.rename(part, path)


import time
import zipfile

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

ENTRIES = 4_000
USED = 1_280
EPOCHS = 1


def prepare():
    path = os.path.join(CACHE, "frames.zip")
    if not os.path.exists(path):
        def write(p):
            rng = np.random.default_rng(0)
            with zipfile.ZipFile(p, "w") as z:
                for i in range(ENTRIES):
                    z.writestr(f"seq/{i:05d}.raw", rng.integers(0, 255, 2_048, dtype=np.uint8).tobytes())
        save(path, write)


def consume(batch):
    time.sleep(0.05)


class Frames(Dataset):
    archive = None

    def __len__(self):
        return USED

    def __getitem__(self, i):
        if self.archive is None:
            self.archive = zipfile.ZipFile(os.path.join(CACHE, "frames.zip"))
        return torch.frombuffer(bytearray(self.archive.read(f"seq/{i:05d}.raw")), dtype=torch.uint8)


def make_loader():
    return DataLoader(Frames(), batch_size=16, num_workers=2)
