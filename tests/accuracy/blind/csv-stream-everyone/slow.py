"""Two CSV logs chained into one stream; three workers."""
import csv
import os
import tempfile

import torch
from torch.utils.data import ChainDataset, DataLoader, IterableDataset

HERE = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "csv-stream-everyone", "csv")
NAMES = ("monday.csv", "tuesday.csv")
ROWS, COLS = 40_000, 24


def prepare():
    os.makedirs(HERE, exist_ok=True)
    for day, name in enumerate(NAMES):
        path = os.path.join(HERE, name)
        if not os.path.exists(path):
            with open(path, "w", newline="") as out:
                rows = csv.writer(out)
                for r in range(ROWS):
                    rows.writerow([f"{(r * 31 + c * 7 + day) % 1000 / 997:.5f}" for c in range(COLS)])


class CsvLog(IterableDataset):
    def __init__(self, path):
        self.path = path

    def rows(self):
        with open(self.path, newline="") as lines:
            yield from csv.reader(lines)

    def __iter__(self):
        for row in self.rows():
            values = torch.tensor([float(cell) for cell in row])
            yield values[:-1], values[-1]


def make_loader():
    return DataLoader(ChainDataset([CsvLog(os.path.join(HERE, n)) for n in NAMES]), batch_size=128, num_workers=3)
