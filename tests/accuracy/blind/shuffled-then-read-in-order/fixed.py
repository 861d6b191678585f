"""Shuffled then read in order (fixed)."""
import os
import tempfile

CACHE = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "shuffled-then-read-in-order")


def save(path, write):
    """Makes the data once: into a temporary name first, so that a run cut short leaves nothing half done."""
    os.makedirs(CACHE, exist_ok=True)
    part = os.path.join(os.path.dirname(path), f"part{os.getpid()}-" + os.path.basename(path))
    write(part)
    os.rename(part, path)


os.environ.setdefault("HF_HOME", os.path.join(CACHE, "hf"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import datasets

datasets.disable_progress_bars()

import time

import numpy as np

ROWS = 120_000
EPOCHS = 6


def prepare():
    path = os.path.join(CACHE, "rows")
    if not os.path.isdir(path):
        def write(p):
            rng = np.random.default_rng(0)
            ds = datasets.Dataset.from_dict({"ids": list(rng.integers(0, 30_000, (ROWS, 64))),
                                             "w": rng.standard_normal(ROWS)})
            ds.save_to_disk(os.path.join(p, "plain"))
            ds.shuffle(seed=1).flatten_indices().save_to_disk(os.path.join(p, "flat"))
        save(path, write)


def consume(batch):
    time.sleep(0.003)


class Epochs:
    def __init__(self, ds):
        self.ds = ds.with_format("numpy")

    def __iter__(self):
        return self.ds.iter(batch_size=500)


def make_loader():
    return Epochs(datasets.load_from_disk(os.path.join(CACHE, "rows", "flat")))
