"""HEALTHY: batches are made ahead by a thread"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "thread-prefetch")

import queue
import threading
import time

import numpy as np
import torch


class Ahead:
    """Makes batches in a thread, four ahead."""

    def __init__(self, make, count):
        self.make, self.count = make, count

    def __len__(self):
        return self.count

    def __iter__(self):
        line = queue.Queue(4)

        def fill():
            for k in range(self.count):
                line.put(self.make(k))
            line.put(None)

        threading.Thread(target=fill, daemon=True).start()
        while (batch := line.get()) is not None:
            yield batch


X = np.random.default_rng(0).standard_normal((8_000, 512)).astype(np.float32)


def make(k):
    rows = np.random.default_rng(k).integers(0, len(X), 64)
    return torch.from_numpy((X[rows] - X[rows].mean(0)) / (X[rows].std(0) + 1e-6))


def make_loader():
    return Ahead(make, 90)


def consume(batch):
    time.sleep(0.04)
