"""Parsing keeps up (slow)."""
import os
import tempfile

CACHE = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "parsing-keeps-up")


def save(path, write):
    """Makes the data once: into a temporary name first, so that a run cut short leaves nothing half done."""
    os.makedirs(CACHE, exist_ok=True)
    part = os.path.join(os.path.dirname(path), f"part{os.getpid()}-" + os.path.basename(path))
    write(part)
    os.rename(part, path)


import json
import random
import time

import torch
from torch.utils.data import DataLoader, IterableDataset

EPOCHS = 1
LINES = 9_000


def prepare():
    path = os.path.join(CACHE, "stories.jsonl")
    if not os.path.exists(path):
        def write(p):
            r = random.Random(2)
            with open(p, "w") as f:
                for _ in range(LINES):
                    f.write(json.dumps({"ids": [r.randrange(32_000) for _ in range(900)]}) + "\n")
        save(path, write)


class Stories(IterableDataset):
    def __init__(self, wide):
        self.wide = wide

    def __iter__(self):
        with open(os.path.join(CACHE, "stories.jsonl"), "rb") as f:
            for line in f:
                yield torch.tensor(json.loads(line)["ids"][:self.wide])


def consume(batch):
    time.sleep(0.06)


def make_loader():
    return DataLoader(Stories(512), batch_size=32, num_workers=1, prefetch_factor=4)
