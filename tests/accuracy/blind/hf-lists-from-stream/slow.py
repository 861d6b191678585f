"""two corpora joined and streamed without a format: rows are Python lists"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "hf-lists-from-stream")

import numpy as np
import torch
from datasets import Dataset, concatenate_datasets, load_from_disk
from torch.utils.data import DataLoader

PARTS = [os.path.join(ROOT, "ecg"), os.path.join(ROOT, "ppg")]


def prepare():
    rng = np.random.default_rng(0)
    for part in PARTS:
        if not os.path.isdir(part):
            signals = rng.standard_normal((2_500, 2_400)).astype(np.float32)
            Dataset.from_dict({"signal": list(signals), "beat": list(range(2_500))}).save_to_disk(part)


def collate(rows):
    return torch.tensor([r["signal"] for r in rows]), torch.tensor([r["beat"] for r in rows])


def make_loader():
    ds = concatenate_datasets([load_from_disk(p) for p in PARTS])
    return DataLoader(ds.to_iterable_dataset(num_shards=4), batch_size=50, collate_fn=collate)
