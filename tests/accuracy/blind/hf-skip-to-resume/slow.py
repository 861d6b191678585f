"""a resumed stream tokenises everything that it skips"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "hf-skip-to-resume")

import re

import numpy as np
from datasets import IterableDataset
from torch.utils.data import DataLoader

WORD = re.compile(r"\w+|[^\w\s]")
DONE = 9_000
MAX_BATCHES = 20


def read():
    rng = np.random.default_rng(0)
    words = [f"word{k}" for k in range(3_000)]
    text = " ".join(words[k] for k in rng.integers(0, 3_000, 900))
    for i in range(20_000):
        at = (i * 131) % 2_000
        yield {"text": text[at : at + 2_400]}


def encode(row):
    ids = [hash(w) % 50_000 for w in WORD.findall(row["text"].lower())][:256]
    return {"ids": np.array(ids + [0] * (256 - len(ids)))}


def make_loader():
    stream = IterableDataset.from_generator(read)
    stream = stream.map(encode, remove_columns=["text"]).skip(DONE)
    return DataLoader(stream, batch_size=16)
