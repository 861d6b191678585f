"""Whole scan for a thumbnail (fixed)."""
import os
import tempfile

CACHE = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "whole-scan-for-a-thumbnail")


def save(path, write):
    """Makes the data once: into a temporary name first, so that a run cut short leaves nothing half done."""
    os.makedirs(CACHE, exist_ok=True)
    part = os.path.join(os.path.dirname(path), f"part{os.getpid()}-" + os.path.basename(path))
    write(part)
    os.rename(part, path)


import time

import cv2
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

N = 420
EPOCHS = 1


def prepare():
    path = os.path.join(CACHE, "scans")
    if not os.path.isdir(path):
        def write(p):
            os.makedirs(p)
            rng = np.random.default_rng(0)
            for i in range(12):
                img = cv2.resize(rng.integers(0, 255, (50, 60, 3), dtype=np.uint8), (3000, 2400), interpolation=cv2.INTER_CUBIC)
                cv2.imwrite(os.path.join(p, f"{i}.jpg"), img)
        save(path, write)


class Scans(Dataset):
    def __init__(self, flag):
        self.flag = flag

    def __len__(self):
        return N

    def __getitem__(self, i):
        img = cv2.imread(os.path.join(CACHE, "scans", f"{i % 12}.jpg"), self.flag)
        return torch.from_numpy(cv2.resize(img, (160, 128), interpolation=cv2.INTER_AREA))


def consume(batch):
    time.sleep(0.05)


def make_loader():
    return DataLoader(Scans(cv2.IMREAD_REDUCED_COLOR_8), batch_size=10, num_workers=2)
