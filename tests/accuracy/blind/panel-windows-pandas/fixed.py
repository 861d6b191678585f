"""Windows of many series out of one long data frame."""
import numpy as np
import pandas as pd
import torch
from torch.utils.data import DataLoader, Dataset

SERIES, LENGTH, WINDOW = 60, 400, 48


def panel():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((SERIES * LENGTH, 5)), columns=["load", "temp", "wind", "price", "sun"])
    frame["series"] = np.repeat(np.arange(SERIES), LENGTH)
    frame["t"] = np.tile(np.arange(LENGTH), SERIES)
    return frame


class Windows(Dataset):
    def __init__(self, frame):
        ordered = frame.sort_values(["series", "t"])
        self.values = ordered[["load", "temp", "wind", "price", "sun"]].to_numpy(np.float32).reshape(SERIES, LENGTH, 5)
        self.starts = [(s, t) for s in range(SERIES) for t in range(0, LENGTH - WINDOW, 10)]

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, i):
        s, t = self.starts[i]
        part = torch.from_numpy(self.values[s, t : t + WINDOW])
        return part[:-1], part[-1, 0]


def make_loader():
    return DataLoader(Windows(panel()), batch_size=32, shuffle=True, num_workers=2)


def consume(batch):
    batch[0].mean().item()
