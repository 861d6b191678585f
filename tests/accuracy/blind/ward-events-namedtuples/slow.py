"""a stay in hospital leaves its worker as a list of thousands of named tuples."""
import os
import shutil
import tempfile
from typing import NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "ward-events-namedtuples")
N_FILES, N_STAYS, N_EVENTS = 40, 300, 4000


class Event(NamedTuple):
    hours: float
    kind: int
    value: float
    flag: float


def prepare():
    if os.path.isdir(ROOT):
        return
    tmp = f"{ROOT}.{os.getpid()}"
    os.makedirs(tmp, exist_ok=True)
    rng = np.random.default_rng(4)
    for k in range(N_FILES):
        np.savez(os.path.join(tmp, f"stay_{k:03d}.npz"),
                 hours=np.sort(rng.uniform(0, 200, N_EVENTS)),
                 kind=rng.integers(0, 60, N_EVENTS),
                 value=rng.normal(size=N_EVENTS).astype(np.float32),
                 flag=(rng.random(N_EVENTS) < 0.1).astype(np.float32))
    try:
        os.rename(tmp, ROOT)
    except OSError:
        shutil.rmtree(tmp, ignore_errors=True)


class Stays(Dataset):
    def __len__(self):
        return N_STAYS

    def __getitem__(self, i):
        with np.load(os.path.join(ROOT, f"stay_{i % N_FILES:03d}.npz")) as z:
            events = [Event(*row) for row in zip(z["hours"], z["kind"], z["value"], z["flag"])]
        return {"stay": i, "events": events, "died": i % 11 == 0}


def keep_list(rows):
    return rows


def consume(batch):
    torch.tensor([len(r["events"]) for r in batch])


def make_loader():
    return DataLoader(Stays(), batch_size=4, num_workers=2, collate_fn=keep_list)
