"""ICU time series: one row per patient, stored by the export job in gzip blocks of 2048 patients."""
import os
import tempfile
from os import getpid, makedirs, path, rename

import h5py
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, RandomSampler

STORE = path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "patients-gzip-blocks", "icu.h5")
BLOCK, WIDTH, NBLOCKS = 2048, 512, 16
VISITS = 400


def prepare():
    if path.exists(STORE):
        return
    makedirs(path.dirname(STORE), exist_ok=True)
    rng = np.random.default_rng(5)
    part = f"{STORE}.{getpid()}"
    with h5py.File(part, "w") as f:
        d = f.create_dataset("vitals", (BLOCK * NBLOCKS, WIDTH), "f4", chunks=(BLOCK, WIDTH),
                             compression="gzip", compression_opts=1)
        base = np.round(rng.standard_normal((BLOCK, WIDTH)) * 8).astype("f4")
        for b in range(NBLOCKS):
            d[b * BLOCK:(b + 1) * BLOCK] = base + b
    rename(part, STORE)


class Patients(Dataset):
    def __init__(self):
        # 1 MiB of chunk cache, so that many of these can be open at once
        self.file = h5py.File(STORE, "r", rdcc_nbytes=1 << 20)
        self.vitals = self.file["vitals"]

    def __len__(self):
        return BLOCK * NBLOCKS

    def __getitem__(self, i):
        return torch.from_numpy(self.vitals[i])


def make_loader():
    ds = Patients()
    pick = RandomSampler(ds, replacement=True, num_samples=VISITS)
    return DataLoader(ds, batch_size=8, sampler=pick)
