"""Volumes and a heavy net (slow)."""
import os
import tempfile

CACHE = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "volumes-and-a-heavy-net")


def save(path, write):
    """Makes the data once: into a temporary name first, so that a run cut short leaves nothing half done."""
    os.makedirs(CACHE, exist_ok=True)
    part = os.path.join(os.path.dirname(path), f"part{os.getpid()}-" + os.path.basename(path))
    write(part)
    os.rename(part, path)


import h5py
import numpy as np
import torch
from torch import nn

SCANS = 45
EPOCHS = 1


def prepare():
    path = os.path.join(CACHE, "scans.h5")
    if not os.path.exists(path):
        def write(p):
            rng = np.random.default_rng(4)
            with h5py.File(p, "w") as f:
                f.create_dataset("v", data=rng.standard_normal((SCANS, 32, 64, 64)).astype("f4"),
                                 chunks=(1, 32, 64, 64))
        save(path, write)


torch.set_num_threads(1)      # the other cores belong to others
torch.manual_seed(0)
net = nn.Sequential(nn.Conv3d(1, 24, 3, padding=1), nn.ReLU(), nn.Conv3d(24, 24, 3, padding=1),
                    nn.ReLU(), nn.Conv3d(24, 1, 1))


def consume(volume):
    out = net(volume)
    out.pow(2).mean().backward()
    net.zero_grad()


def patches(flip):
    with h5py.File(os.path.join(CACHE, "scans.h5"), "r") as f:
        for i in range(SCANS):
            v = torch.from_numpy(f["v"][i])[None, None]
            yield v.flip(2) if flip else v


def make_loader():
    return patches(flip=True)
