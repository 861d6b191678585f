"""batched, and only the column that is looked at"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "hf-filter-rowwise")

import numpy as np
from datasets import Dataset, load_from_disk
from torch.utils.data import DataLoader

DISK = os.path.join(ROOT, "corpus")


def prepare():
    if not os.path.isdir(DISK):
        rng = np.random.default_rng(0)
        n = 50_000
        ds = Dataset.from_dict({
            "text": [f"sentence {i} " * int(k) for i, k in enumerate(rng.integers(1, 6, n))],
            "tokens": list(rng.integers(0, 30_000, (n, 96))),
            "lang": ["en" if k else "fr" for k in rng.integers(0, 2, n)],
        })
        ds.save_to_disk(DISK)
    load_from_disk(DISK).cleanup_cache_files()


def make_loader():
    ds = load_from_disk(DISK)
    ds = ds.filter(lambda lang: [x == "en" for x in lang], batched=True, input_columns=["lang"])
    return DataLoader(ds.select_columns(["tokens"]).with_format("torch"), batch_size=64)


MAX_BATCHES = 40
