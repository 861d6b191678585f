"""a feature file and a label file for each sample, cold"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "two-files-per-sample")

import json

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

N = 4_000

def evict(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def prepare():
    done = os.path.join(ROOT, "packed.npy")
    if not os.path.exists(done):
        rng = np.random.default_rng(0)
        x = rng.standard_normal((N, 256)).astype(np.float32)
        for sub in ("features", "labels"):
            os.makedirs(os.path.join(ROOT, sub), exist_ok=True)
        for i in range(N):
            np.save(os.path.join(ROOT, "features", f"{i:05d}.npy"), x[i])
            with open(os.path.join(ROOT, "labels", f"{i:05d}.json"), "w") as f:
                json.dump({"label": i % 7, "weight": 1.0}, f)
        np.save(os.path.join(ROOT, "labels.npy"), np.arange(N) % 7)
        np.save(done, x)
        os.sync()
    for folder, _, names in os.walk(ROOT):
        for name in names:
            evict(os.path.join(folder, name))


class Pairs(Dataset):
    def __len__(self):
        return N

    def __getitem__(self, i):
        x = np.load(os.path.join(ROOT, "features", f"{i:05d}.npy"))
        with open(os.path.join(ROOT, "labels", f"{i:05d}.json")) as f:
            y = json.load(f)["label"]
        return torch.from_numpy(x), y


def make_loader():
    return DataLoader(Pairs(), batch_size=32, shuffle=True)
