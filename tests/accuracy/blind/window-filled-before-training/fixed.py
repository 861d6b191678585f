"""Window filled before training (fixed)."""
import os
import tempfile

CACHE = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "window-filled-before-training")


def save(path, write):
    """Makes the data once: into a temporary name first, so that a run cut short leaves nothing half done."""
    os.makedirs(CACHE, exist_ok=True)
    part = os.path.join(os.path.dirname(path), f"part{os.getpid()}-" + os.path.basename(path))
    write(part)
    os.rename(part, path)


import io
import random
import time

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, IterableDataset

PICTURES = 64
EPOCHS = 1
MAX_BATCHES = 25


def prepare():
    path = os.path.join(CACHE, "pics.npy")
    if not os.path.exists(path):
        def write(p):
            rng = np.random.default_rng(0)
            out = []
            for _ in range(PICTURES):
                buf = io.BytesIO()
                Image.fromarray(rng.integers(0, 255, (20, 20, 3), dtype=np.uint8)).resize((256, 256)).save(buf, "JPEG")
                out.append(np.frombuffer(buf.getvalue(), dtype=np.uint8))
            np.save(p, np.array(out, dtype=object), allow_pickle=True)
        save(path, write)


def consume(batch):
    time.sleep(0.05)


def decoded():
    blobs = np.load(os.path.join(CACHE, "pics.npy"), allow_pickle=True)
    i = 0
    while True:
        img = Image.open(io.BytesIO(blobs[i % PICTURES].tobytes())).convert("RGB").resize((64, 64))
        yield torch.from_numpy(np.asarray(img).copy())
        i += 1


class Shuffled(IterableDataset):
    def __init__(self, window):
        self.window = window

    def __iter__(self):
        r, held = random.Random(0), []
        for sample in decoded():
            if len(held) < self.window:
                held.append(sample)
                continue
            k = r.randrange(self.window)
            held[k], sample = sample, held[k]
            yield sample


def make_loader():
    return DataLoader(Shuffled(window=100), batch_size=24)
