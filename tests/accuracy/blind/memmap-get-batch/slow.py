"""HEALTHY: a plain generator over memory-mapped tokens and a small language model"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "memmap-get-batch")

import numpy as np
import torch

FILE = os.path.join(ROOT, "val.bin")
T, B = 128, 12


def prepare():
    os.makedirs(ROOT, exist_ok=True)
    if not os.path.exists(FILE):
        np.random.default_rng(0).integers(0, 512, 30_000_000, dtype=np.uint16).tofile(FILE)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.e = torch.nn.Embedding(512, 128)
        self.b = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(128, 4, 512, batch_first=True, dropout=0.0), 2)
        self.h = torch.nn.Linear(128, 512)

    def forward(self, x, y):
        return torch.nn.functional.cross_entropy(self.h(self.b(self.e(x))).flatten(0, 1), y.flatten())


NET = Model()
OPT = torch.optim.AdamW(NET.parameters(), 3e-4)


def batches():
    rng = np.random.default_rng(1)
    for _ in range(40):
        data = np.memmap(FILE, dtype=np.uint16, mode="r")        # anew each time, against a leak
        at = rng.integers(0, len(data) - T - 1, B)
        x = torch.stack([torch.from_numpy(data[i : i + T].astype(np.int64)) for i in at])
        y = torch.stack([torch.from_numpy(data[i + 1 : i + 1 + T].astype(np.int64)) for i in at])
        yield x, y


def make_loader():
    return batches()


def consume(batch):
    loss = NET(*batch)
    OPT.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(NET.parameters(), 1.0)
    OPT.step()
