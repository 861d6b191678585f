"""Neighbour lists as plain Python, workers started by forkserver."""
import random

import torch
from torch.utils.data import DataLoader, Dataset


class Neighbours(Dataset):
    def __init__(self, nodes=260_000):
        draw = random.Random(3)
        self.graph = {
            node: {"to": [draw.randrange(nodes) for _ in range(6)], "w": draw.random(), "tag": f"n{node}"}
            for node in range(nodes)
        }
        self.roots = list(range(0, nodes, 500))

    def __len__(self):
        return len(self.roots)

    def __getitem__(self, i):
        root = self.graph[self.roots[i]]
        two = [self.graph[n]["w"] for n in root["to"]]
        return torch.tensor(two), root["w"]


def make_loader():
    return DataLoader(Neighbours(), batch_size=32, num_workers=2, multiprocessing_context="fork")
