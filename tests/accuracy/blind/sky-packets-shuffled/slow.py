"""Sky-survey packets, bz2 each, one stream; a home-made shuffle buffer in front of a short smoke run."""
import bz2
import os
import random
import struct
import tempfile
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset

STREAM = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "sky-packets-shuffled", "night.pkt")
UNIQUE, REPEAT, SIDE = 200, 20, 180
BUFFER = 3500
MAX_BATCHES = 40


def prepare():
    if os.path.exists(STREAM):
        return
    os.makedirs(os.path.dirname(STREAM), exist_ok=True)
    rng = np.random.default_rng(2)
    packets = []
    for _ in range(UNIQUE):
        sky = rng.normal(100, 6, (SIDE, SIDE)).astype("<i2")
        data = bz2.compress(sky.tobytes(), 1)
        packets.append(struct.pack("<I", len(data)) + data)
    tmp = f"{STREAM}.{os.getpid()}"
    with open(tmp, "wb") as f:
        f.write(b"".join(packets) * REPEAT)
    os.rename(tmp, STREAM)


def packets(path):
    with open(path, "rb") as f:
        while head := f.read(4):
            yield np.frombuffer(bz2.decompress(f.read(struct.unpack("<I", head)[0])), "<i2").reshape(SIDE, SIDE)


def shuffled(stream, size, rng):
    pool = []
    for sky in stream:
        if len(pool) < size:
            pool.append(sky)
            continue
        k = rng.randrange(size)
        pool[k], out = sky, pool[k]
        yield out
    rng.shuffle(pool)
    yield from pool


class Night(IterableDataset):
    def __iter__(self):
        for sky in shuffled(packets(STREAM), BUFFER, random.Random(0)):
            yield torch.from_numpy(sky.copy())


def make_loader():
    return DataLoader(Night(), batch_size=8)


def consume(batch):
    time.sleep(0.015)
