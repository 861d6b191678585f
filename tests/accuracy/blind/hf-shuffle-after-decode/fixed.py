"""shuffled first, decoded after"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "hf-shuffle-after-decode")

import io

import numpy as np
import torch
from datasets import Dataset, load_from_disk
from PIL import Image
from torch.utils.data import DataLoader

DISK = os.path.join(ROOT, "photos")
MAX_BATCHES = 12


def prepare():
    if os.path.isdir(DISK):
        return
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(6_000):
        out = io.BytesIO()
        small = Image.fromarray(rng.integers(0, 255, (20, 20, 3), dtype=np.uint8))
        small.resize((160, 160), Image.BILINEAR).save(out, "JPEG", quality=90)
        rows.append(out.getvalue())
    Dataset.from_dict({"jpg": rows, "label": [i % 10 for i in range(len(rows))]}).save_to_disk(DISK)


def decode(row):
    image = Image.open(io.BytesIO(row.pop("jpg"))).convert("RGB")
    row["image"] = np.asarray(image)
    return row


def collate(rows):
    return torch.from_numpy(np.stack([r["image"] for r in rows])), torch.tensor([r["label"] for r in rows])


def make_loader():
    stream = load_from_disk(DISK).to_iterable_dataset(num_shards=8)
    stream = stream.shuffle(seed=1, buffer_size=3_000).map(decode)
    return DataLoader(stream, batch_size=32, collate_fn=collate)
