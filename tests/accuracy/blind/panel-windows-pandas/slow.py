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
        self.frame = frame
        self.starts = [(s, t) for s in range(SERIES) for t in range(0, LENGTH - WINDOW, 10)]

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, i):
        s, t = self.starts[i]
        part = self.frame[(self.frame.series == s) & (self.frame.t >= t) & (self.frame.t < t + WINDOW)]
        past = part[["load", "temp", "wind", "price", "sun"]].iloc[:-1]
        return torch.tensor(past.values, dtype=torch.float32), torch.tensor(part["load"].iloc[-1])


def make_loader():
    return DataLoader(Windows(panel()), batch_size=32, shuffle=True, num_workers=2)


def consume(batch):
    batch[0].mean().item()
