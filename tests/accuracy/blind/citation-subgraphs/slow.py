"""every item samples a fresh neighbourhood of a paper on the CPU, all in the main process."""
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

N_PAPERS, N_CITES = 40_000, 600_000
GRAPH = {}


def prepare():
    rng = np.random.default_rng(8)
    src = np.sort(rng.integers(0, N_PAPERS, N_CITES))
    GRAPH["ptr"] = np.searchsorted(src, np.arange(N_PAPERS + 1))
    GRAPH["dst"] = rng.integers(0, N_PAPERS, N_CITES)


class Neighbourhoods(Dataset):
    """Three hops, up to six cited papers each, new draws on each visit; then ranks by how often a paper is reached."""

    def __init__(self, seeds):
        self.seeds = seeds

    def __len__(self):
        return len(self.seeds)

    def hops(self, seed, rng):
        ptr, dst = GRAPH["ptr"], GRAPH["dst"]
        frontier, edges = [int(seed)], []
        for fan in (6, 6, 6):
            nxt = []
            for v in frontier:
                lo, hi = int(ptr[v]), int(ptr[v + 1])
                if hi == lo:
                    continue
                for u in dst[rng.integers(lo, hi, fan)].tolist():
                    edges.append((v, u))
                    nxt.append(u)
            frontier = nxt
        return edges

    def __getitem__(self, i):
        rng = np.random.default_rng()
        tally = np.zeros(64, dtype=np.float32)
        for _ in range(60):
            edges = self.hops(self.seeds[i], rng)
            if edges:
                tally += np.bincount([u % 64 for _, u in edges], minlength=64)
        return torch.from_numpy(tally), int(self.seeds[i]) % 40


def consume(batch):
    time.sleep(0.025)                     # the step on the device


def make_loader():
    return DataLoader(Neighbourhoods(np.arange(0, N_PAPERS, 148)), batch_size=3, shuffle=True)
