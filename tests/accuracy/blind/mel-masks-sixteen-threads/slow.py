"""worker_init_fn "gives torch its threads back", sixteen of them in each of two workers."""
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

N, BANDS, STEPS = 1200, 80, 4000


class MaskedMels(Dataset):
    def __init__(self):
        rng = np.random.default_rng(10)
        self.base = rng.random((8, BANDS, STEPS), dtype=np.float32)

    def __len__(self):
        return N

    def __getitem__(self, i):
        mel = torch.from_numpy(self.base[i % 8])
        gain = float(np.random.uniform(0.8, 1.2))
        for _ in range(8):
            mel = mel * gain
            mel = mel + 0.01
            mel = mel.clamp(0.0, 4.0)
            mel = mel.sqrt()
        return mel[:, ::40].contiguous()


def all_threads(worker_id):
    torch.set_num_threads(16)             # the number on the big machine


def consume(batch):
    time.sleep(0.002)


def make_loader():
    return DataLoader(MaskedMels(), batch_size=8, num_workers=2, worker_init_fn=all_threads)
