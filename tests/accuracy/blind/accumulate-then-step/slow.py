"""seven light micro-steps, then a long optimizer step; the queue bridges the burst."""
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

ACCUMULATE, CYCLES = 8, 12


class Patches(Dataset):
    def __len__(self):
        return ACCUMULATE * CYCLES * 4

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        a = rng.random((96, 96), dtype=np.float32)
        a = np.abs(np.fft.rfft2(a))
        return torch.from_numpy(a.astype(np.float32))


SEEN = [0]


def consume(batch):
    SEEN[0] += 1
    time.sleep(0.020)                      # forward and backward on the device
    if SEEN[0] % ACCUMULATE == 0:
        time.sleep(0.400)                  # all-reduce and optimizer step


def make_loader():
    return DataLoader(Patches(), batch_size=4, num_workers=2, prefetch_factor=4)
