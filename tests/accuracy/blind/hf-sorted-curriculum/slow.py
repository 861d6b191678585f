"""a set sorted by difficulty is read through the indices that sort() left"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "hf-sorted-curriculum")

import numpy as np
from datasets import Dataset, load_from_disk

DISK = os.path.join(ROOT, "problems")


def prepare():
    if os.path.isdir(DISK):
        return
    rng = np.random.default_rng(0)
    n = 60_000
    ds = Dataset.from_dict({
        "x": list(rng.standard_normal((n, 64)).astype(np.float32)),
        "difficulty": rng.permutation(n).tolist(),
    })
    ds.save_to_disk(DISK + ".new")
    flat = load_from_disk(DISK + ".new").sort("difficulty").flatten_indices()
    flat.save_to_disk(DISK + "-flat")
    os.rename(DISK + ".new", DISK)


class Curriculum:
    """Easy ones first; small batches."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows) // 8

    def __iter__(self):
        for batch in self.rows.iter(batch_size=8):
            yield batch["x"], batch["difficulty"]


def make_loader():
    return Curriculum(load_from_disk(DISK).sort("difficulty").with_format("torch"))
