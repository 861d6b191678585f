"""Somebody chased a leak and left gc.collect() in the dataset, which holds a big annotation index."""
import gc

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Scenes(Dataset):
    def __init__(self, n=300):
        self.index = {
            f"scene-{s}/{k}": {"box": [s, k, s + k], "ids": (s, k)} for s in range(n) for k in range(900)
        }
        self.n = n
        self.rng = np.random.default_rng(0)

    def __len__(self):
        return 64

    def __getitem__(self, s):
        sweep = self.rng.random((4000, 4), dtype=np.float32)
        boxes = np.array([self.index[f"scene-{s}/{k}"]["box"] for k in range(0, 900, 90)])
        points = torch.from_numpy(sweep)
        del sweep
        gc.collect()
        return points, torch.from_numpy(boxes)


def make_loader():
    return DataLoader(Scenes(), batch_size=4, num_workers=2)
