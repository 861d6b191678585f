"""the offsets of the rows are found once, then every item seeks"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "csv-rescan")

import csv
import itertools
import random

import torch
from torch.utils.data import DataLoader, Dataset

TABLE = os.path.join(ROOT, "train.csv")
ROWS = 6_000


def prepare():
    if os.path.exists(TABLE):
        return
    os.makedirs(ROOT, exist_ok=True)
    rng = random.Random(0)
    with open(TABLE + ".new", "w", newline="") as f:
        w = csv.writer(f)
        for _ in range(ROWS):
            w.writerow([f"{rng.gauss(0, 1):.5f}" for _ in range(20)])
    os.rename(TABLE + ".new", TABLE)


class BigCsv(Dataset):
    """Does not load the file, because the real one has 40 GB."""

    file = None

    def __len__(self):
        return 400

    def __getitem__(self, i):
        if self.file is None:
            self.file = open(TABLE, "rb")
            self.offsets = [0]
            for line in self.file:
                self.offsets.append(self.offsets[-1] + len(line))
        self.file.seek(self.offsets[(i * 37) % ROWS])
        row = self.file.readline().decode().split(",")
        return torch.tensor([float(v) for v in row])


def make_loader():
    return DataLoader(BigCsv(), batch_size=16)
