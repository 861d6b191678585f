"""left to Python"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "gc-collect-each-step")

import time

import torch
from torch.utils.data import DataLoader, Dataset

INDEX = {}


def prepare():
    for image in range(60_000):
        INDEX[image] = {"boxes": [[image, 1.0, k] for k in range(8)], "tags": [{"name": "x"}, {"name": "y"}]}


class Boxes(Dataset):
    def __len__(self):
        return 40 * 8

    def __getitem__(self, i):
        return torch.tensor(INDEX[i]["boxes"])


def make_loader():
    return DataLoader(Boxes(), batch_size=8)


def consume(batch):
    time.sleep(0.025)                    # forward and backward on the accelerator
    del batch
