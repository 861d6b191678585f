"""Lmdb pictures in time (slow)."""
import os
import tempfile

CACHE = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "lmdb-pictures-in-time")


def save(path, write):
    """Makes the data once: into a temporary name first, so that a run cut short leaves nothing half done."""
    os.makedirs(CACHE, exist_ok=True)
    part = os.path.join(os.path.dirname(path), f"part{os.getpid()}-" + os.path.basename(path))
    write(part)
    os.rename(part, path)


import io
import time

import lmdb
import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

N = 1_200
EPOCHS = 2


def prepare():
    path = os.path.join(CACHE, "pics.lmdb")
    if not os.path.isdir(path):
        def write(p):
            rng = np.random.default_rng(0)
            env = lmdb.open(p, map_size=1 << 28)
            with env.begin(write=True) as txn:
                for i in range(N):
                    small = Image.fromarray(rng.integers(0, 255, (12, 12, 3), dtype=np.uint8))
                    buf = io.BytesIO()
                    small.resize((96, 96)).save(buf, "JPEG")
                    txn.put(b"%06d" % i, buf.getvalue())
            env.close()
        save(path, write)


class Pictures(Dataset):
    env = None

    def __len__(self):
        return N

    def __getitem__(self, i):
        if self.env is None:
            self.env = lmdb.open(os.path.join(CACHE, "pics.lmdb"), readonly=True, lock=False, readahead=False)
        with self.env.begin() as txn:
            img = Image.open(io.BytesIO(txn.get(b"%06d" % i)))
        return torch.from_numpy(np.asarray(img).copy())


def consume(batch):
    time.sleep(0.2)


def make_loader():
    return DataLoader(Pictures(), batch_size=32, num_workers=2, persistent_workers=True)
