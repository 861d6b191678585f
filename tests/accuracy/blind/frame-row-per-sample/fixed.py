"""Frame row per sample (fixed)."""
import time

import numpy as np
import pandas as pd
import torch
from torch.utils.data import DataLoader, Dataset

N = 200_000
EPOCHS = 1


def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame({
        "start": rng.integers(0, 9_000, N), "stop": rng.integers(9_000, 9_900, N),
        "target": rng.integers(0, 4, N), "gain": rng.standard_normal(N),
        "subject": rng.choice(["s1", "s2", "s3"], N), "good": rng.random(N) > 0.1})


SIGNAL = torch.arange(10_000, dtype=torch.float32)


def window(start, gain, target):
    return SIGNAL[start:start + 100] * gain, target


def consume(batch):
    time.sleep(0.003)


class Windows(Dataset):
    def __init__(self):
        meta = frame()
        self.start, self.gain, self.target = (meta[c].to_numpy() for c in ("start", "gain", "target"))

    def __len__(self):
        return len(self.start)

    def __getitem__(self, i):
        return window(int(self.start[i]), float(self.gain[i]), int(self.target[i]))


def make_loader():
    return DataLoader(Windows(), batch_size=128)
