"""A set of 24 images, twelve passes, a large model."""
import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 6
NET = torch.nn.Sequential(torch.nn.Conv2d(3, 48, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(48, 48, 3, padding=1))


def make_loader():
    images = np.random.default_rng(0).random((24, 3, 64, 64), dtype=np.float32)
    return DataLoader(TensorDataset(torch.from_numpy(images)), batch_size=8, shuffle=True)


def consume(batch):
    NET(batch[0]).square().mean().backward()
