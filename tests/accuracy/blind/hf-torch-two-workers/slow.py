"""HEALTHY: a Hugging Face set in torch format, two workers, the accelerator is the limit"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "hf-torch-two-workers")

import time

import numpy as np
from datasets import Dataset, load_from_disk
from torch.utils.data import DataLoader

DISK = os.path.join(ROOT, "rows")


def prepare():
    if not os.path.isdir(DISK):
        x = np.random.default_rng(0).standard_normal((4_000, 128)).astype(np.float32)
        Dataset.from_dict({"x": list(x), "y": list(range(4_000))}).save_to_disk(DISK)


def make_loader():
    return DataLoader(load_from_disk(DISK).with_format("torch"), batch_size=64, shuffle=True, num_workers=2)


def consume(batch):
    time.sleep(0.06)
