"""a line of JSON is parsed for every item"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "jsonl-linecache")

import json
import linecache

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

LINES = os.path.join(ROOT, "embeddings.jsonl")
N = 6_000


def prepare():
    if os.path.exists(LINES):
        return
    os.makedirs(ROOT, exist_ok=True)
    x = np.random.default_rng(0).standard_normal((N, 1_024)).round(5)
    with open(LINES + ".new", "w") as f:
        for i in range(N):
            f.write(json.dumps({"id": f"doc-{i}", "vector": x[i].tolist()}) + "\n")
    np.save(os.path.join(ROOT, "vectors.npy"), x.astype(np.float32))
    os.rename(LINES + ".new", LINES)


class Vectors(Dataset):
    def __len__(self):
        return N

    def __getitem__(self, i):
        record = json.loads(linecache.getline(LINES, i + 1))
        return torch.tensor(record["vector"], dtype=torch.float32)


def make_loader():
    return DataLoader(Vectors(), batch_size=64, shuffle=True)
