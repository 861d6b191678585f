"""saved once, at the end"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "checkpoint-atomic")

import torch
from torch.utils.data import DataLoader, TensorDataset

CKPT = os.path.join(ROOT, "last.pt")


def prepare():
    os.makedirs(ROOT, exist_ok=True)
    torch.manual_seed(0)


class Trainer:
    def __init__(self):
        self.net = torch.nn.Sequential(torch.nn.Linear(512, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024), torch.nn.Linear(1024, 10))
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=1e-4)
        self.steps = 0

    def step(self, x, y):
        loss = torch.nn.functional.cross_entropy(self.net(x), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.steps += 1
        if self.steps % 64 == 0:
            self.save({"net": self.net.state_dict(), "opt": self.opt.state_dict(), "step": self.steps})

    def save(self, state):
        with open(CKPT + ".part", "wb") as f:
            torch.save(state, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(CKPT + ".part", CKPT)


TRAINER = Trainer()


def make_loader():
    x = torch.randn(64 * 16, 512)
    return DataLoader(TensorDataset(x, torch.arange(len(x)) % 10), batch_size=16, shuffle=True)


def consume(batch):
    TRAINER.step(*batch)
