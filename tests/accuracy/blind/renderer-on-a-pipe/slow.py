"""each picture is asked from a renderer process, one after the other."""
import os
import subprocess
import sys
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

SIDE = 48
SERVER = f"""
import sys, time
for line in sys.stdin:
    time.sleep(0.030)                      # stands in for the renderer waiting for its device
    k = int(line)
    sys.stdout.buffer.write(bytes((k * 7 + j) % 256 for j in range({SIDE})) * {SIDE})
    sys.stdout.buffer.flush()
"""


class Rendered(Dataset):
    def __init__(self, n):
        self.n = n
        self.server = None
        self.owner = None

    def __len__(self):
        return self.n

    def ask(self, k):
        if self.owner != os.getpid():          # one renderer for each process that reads this dataset
            self.server = subprocess.Popen([sys.executable, "-S", "-E", "-c", SERVER],
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.owner = os.getpid()
        self.server.stdin.write(b"%d\n" % k)
        self.server.stdin.flush()
        return self.server.stdout.read(SIDE * SIDE)

    def __getitem__(self, k):
        raw = np.frombuffer(self.ask(k), dtype=np.uint8).reshape(SIDE, SIDE)
        return torch.from_numpy(raw.astype(np.float32)), k % 10


def consume(batch):
    time.sleep(0.005)


def make_loader():
    return DataLoader(Rendered(208), batch_size=8)
