"""Token windows and a small gpt (slow)."""
import os
import tempfile

CACHE = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "token-windows-and-a-small-gpt")


def save(path, write):
    """Makes the data once: into a temporary name first, so that a run cut short leaves nothing half done."""
    os.makedirs(CACHE, exist_ok=True)
    part = os.path.join(os.path.dirname(path), f"part{os.getpid()}-" + os.path.basename(path))
    write(part)
    os.rename(part, path)


import numpy as np
import torch
from torch import nn

STEPS = 160
EPOCHS = 1
BLOCK = 128


def prepare():
    path = os.path.join(CACHE, "train.bin")
    if not os.path.exists(path):
        rng = np.random.default_rng(0)
        save(path, lambda p: rng.integers(0, 512, 4_000_000, dtype=np.uint16).tofile(p))


torch.set_num_threads(1)      # the other cores belong to others
torch.manual_seed(0)
emb = nn.Embedding(512, 192)
layer = nn.TransformerEncoderLayer(192, 6, 768, batch_first=True, dropout=0.0)
head = nn.Linear(192, 512)
opt = torch.optim.AdamW([*emb.parameters(), *layer.parameters(), *head.parameters()], lr=1e-3)


def consume(batch):
    x, y = batch
    opt.zero_grad()
    loss = nn.functional.cross_entropy(head(layer(emb(x))).flatten(0, 1), y.flatten())
    loss.backward()
    opt.step()


class Batches:
    def __init__(self, size):
        self.size = size

    def __iter__(self):
        data = np.memmap(os.path.join(CACHE, "train.bin"), dtype=np.uint16, mode="r")
        rng = np.random.default_rng(7)
        for _ in range(STEPS):
            at = rng.integers(0, len(data) - BLOCK - 1, self.size)
            x = np.stack([data[i:i + BLOCK] for i in at]).astype(np.int64)
            y = np.stack([data[i + 1:i + 1 + BLOCK] for i in at]).astype(np.int64)
            yield torch.from_numpy(x), torch.from_numpy(y)


def make_loader():
    return Batches(size=16)
