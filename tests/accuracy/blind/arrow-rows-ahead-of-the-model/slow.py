"""Arrow rows ahead of the model (slow)."""
import os
import tempfile

CACHE = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "arrow-rows-ahead-of-the-model")


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
from torch.utils.data import DataLoader

EPOCHS = 2
ROWS = 8_000


def prepare():
    path = os.path.join(CACHE, "tokens")
    if not os.path.isdir(path):
        rng = np.random.default_rng(0)
        ids = rng.integers(0, 30_000, (ROWS, 128))
        ds = datasets.Dataset.from_dict({"input_ids": list(ids), "label": rng.integers(0, 4, ROWS)})
        save(path, ds.save_to_disk)


def consume(batch):
    assert batch["input_ids"].shape[1] == 128
    time.sleep(0.12)


def rows():
    return datasets.load_from_disk(os.path.join(CACHE, "tokens")).with_format("torch")


def make_loader():
    return DataLoader(rows(), batch_size=128)
