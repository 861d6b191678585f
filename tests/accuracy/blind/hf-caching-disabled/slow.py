"""disable_caching() was left in from a debugging session, so the same map runs on every start"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "hf-caching-disabled")

import re

import datasets
import numpy as np
from datasets import Dataset, load_from_disk
from torch.utils.data import DataLoader

datasets.disable_caching()
DISK = os.path.join(ROOT, "docs")
WORD = re.compile(r"\w+|[^\w\s]")


def encode(batch):
    ids = []
    for text in batch["text"]:
        row = [hash(w) % 30_000 for w in WORD.findall(text.lower())][:128]
        ids.append(row + [0] * (128 - len(row)))
    return {"ids": ids}


def prepare():
    if not os.path.isdir(DISK):
        words = [f"w{k}" for k in range(5_000)]
        rng = np.random.default_rng(0)
        Dataset.from_dict({"text": [" ".join(rng.choice(words, 160)) for _ in range(24_000)]}).save_to_disk(DISK)
    tokenised()                                   # yesterday's run


def tokenised():
    return load_from_disk(DISK).map(encode, batched=True, remove_columns=["text"])


def make_loader():
    return DataLoader(tokenised().with_format("torch"), batch_size=64)


MAX_BATCHES = 40
