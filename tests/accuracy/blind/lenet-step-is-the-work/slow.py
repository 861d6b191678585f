"""Lenet step is the work (slow)."""
import os
import tempfile

CACHE = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "lenet-step-is-the-work")


def save(path, write):
    """Makes the data once: into a temporary name first, so that a run cut short leaves nothing half done."""
    os.makedirs(CACHE, exist_ok=True)
    part = os.path.join(os.path.dirname(path), f"part{os.getpid()}-" + os.path.basename(path))
    write(part)
    os.rename(part, path)


import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

N = 800
EPOCHS = 1


def prepare():
    path = os.path.join(CACHE, "digits.npz")
    if not os.path.exists(path):
        rng = np.random.default_rng(1)
        save(path, lambda p: np.savez(p, x=rng.integers(0, 255, (N, 48, 48), dtype=np.uint8),
                                      y=rng.integers(0, 10, N)))


class Digits(Dataset):
    def __init__(self):
        with np.load(os.path.join(CACHE, "digits.npz")) as z:
            self.x, self.y = z["x"], z["y"]

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i])[None].float() / 255, int(self.y[i])


torch.set_num_threads(1)      # the other cores belong to others
torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 32, 5), nn.ReLU(), nn.Conv2d(32, 64, 5), nn.ReLU(),
                    nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(1024, 10))
opt = torch.optim.SGD(net.parameters(), lr=0.01)


def consume(batch):
    x, y = batch
    for _ in range(3):
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()


def make_loader():
    return DataLoader(Digits(), batch_size=32, shuffle=False)
