"""Table feeds a busy device (slow)."""
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 3


def tables():
    g = torch.Generator().manual_seed(3)
    return TensorDataset(torch.randn(20_000, 128, generator=g), torch.randint(0, 9, (20_000,), generator=g))


def consume(batch):          # an accelerator is busy; this process only waits for it
    time.sleep(0.045)


def make_loader():
    return DataLoader(tables(), batch_size=200, shuffle=True, generator=torch.Generator().manual_seed(5))
