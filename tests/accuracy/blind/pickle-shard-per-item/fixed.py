"""shards in random order, samples of one shard together, the last shard is kept"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "pickle-shard-per-item")

import pickle
import random

import torch
from torch.utils.data import DataLoader, Dataset

SHARDS, EACH = 12, 800


def shard(k):
    return os.path.join(ROOT, f"shard-{k:03d}.pkl")


def prepare():
    if os.path.exists(shard(SHARDS - 1)):
        return
    os.makedirs(ROOT, exist_ok=True)
    rng = random.Random(1)
    for k in range(SHARDS):
        rows = [{"id": k * EACH + j, "x": [rng.random() for _ in range(200)], "y": j % 10} for j in range(EACH)]
        with open(shard(k) + ".new", "wb") as f:
            pickle.dump(rows, f)
        os.rename(shard(k) + ".new", shard(k))


class Sharded(Dataset):
    kept = None

    def __len__(self):
        return SHARDS * EACH

    def __getitem__(self, i):
        k = i // EACH
        if self.kept is None or self.kept[0] != k:
            with open(shard(k), "rb") as f:
                self.kept = (k, pickle.load(f))
        row = self.kept[1][i % EACH]
        return torch.tensor(row["x"]), row["y"]


MAX_BATCHES = 24


def make_loader():
    order = [k * EACH + j for k in random.sample(range(SHARDS), SHARDS) for j in random.sample(range(EACH), EACH)]
    return DataLoader(Sharded(), batch_size=32, sampler=order)
