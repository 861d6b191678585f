"""histograms of all weights, a picture of the batch and a flushed line every step"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "log-everything")

import json

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, TensorDataset

SEEN = []


def prepare():
    os.makedirs(ROOT, exist_ok=True)


NET = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 384), torch.nn.ReLU(), torch.nn.Linear(384, 10))
OPT = torch.optim.SGD(NET.parameters(), lr=0.01)


class Board:
    """Scalars, histograms and images, in the manner of an event file."""

    def __init__(self, folder):
        self.folder = folder
        self.events = open(os.path.join(folder, "events.jsonl"), "w")

    def scalar(self, name, value, step):
        self.events.write(json.dumps({"t": "scalar", "name": name, "v": value, "step": step}) + "\n")
        self.events.flush()

    def histogram(self, name, values, step):
        counts, edges = np.histogram(values, 64)
        self.events.write(json.dumps({"t": "hist", "name": name, "c": counts.tolist(), "e": edges.tolist(), "step": step}) + "\n")
        self.events.flush()

    def images(self, name, batch, step):
        grid = (batch[:16].permute(0, 2, 3, 1) * 255).to(torch.uint8).reshape(4, 4, 32, 32, 3)
        grid = grid.permute(0, 2, 1, 3, 4).reshape(128, 128, 3).numpy()
        Image.fromarray(grid).resize((512, 512)).save(os.path.join(self.folder, f"{name}-{step % 50}.png"))


BOARD = []


def make_loader():
    BOARD[:] = [Board(ROOT)]
    torch.manual_seed(0)
    x = torch.rand(60 * 32, 3, 32, 32)
    return DataLoader(TensorDataset(x, torch.arange(len(x)) % 10), batch_size=32)


def consume(batch):
    x, y = batch
    loss = torch.nn.functional.cross_entropy(NET(x), y)
    OPT.zero_grad()
    loss.backward()
    OPT.step()
    SEEN.append(1)
    step = len(SEEN)
    board = BOARD[0]
    board.scalar("loss", loss.item(), step)
    for name, p in NET.named_parameters():
        board.histogram(name, p.detach().numpy(), step)
        board.histogram(name + ".grad", p.grad.numpy(), step)
    board.images("inputs", x, step)
