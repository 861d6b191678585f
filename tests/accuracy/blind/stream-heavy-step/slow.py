"""HEALTHY: a stream with light rows and a real step"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "stream-heavy-step")

import numpy as np
import torch
from datasets import IterableDataset
from torch.utils.data import DataLoader

NET = torch.nn.Sequential(torch.nn.Linear(256, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 10))
OPT = torch.optim.AdamW(NET.parameters())


def read():
    rng = np.random.default_rng(0)
    for i in range(64 * 60):
        yield {"x": rng.random(256, dtype=np.float32), "y": i % 10}


def make_loader():
    stream = IterableDataset.from_generator(read).map(lambda row: {**row, "x": row["x"] * 2}).shuffle(buffer_size=200, seed=0)
    return DataLoader(stream.with_format("torch"), batch_size=64)


def consume(batch):
    loss = torch.nn.functional.cross_entropy(NET(batch["x"]), batch["y"])
    OPT.zero_grad()
    loss.backward()
    OPT.step()
