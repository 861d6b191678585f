"""the manifest of a speech corpus goes pickled to each spawned worker."""
from dataclasses import dataclass

import torch
from torch.utils.data import DataLoader, Dataset, RandomSampler

ROWS = 600_000


@dataclass
class Utterance:
    path: str
    speaker: int
    seconds: float
    words: tuple


class Corpus(Dataset):
    def __init__(self, manifest):
        self.manifest = manifest

    def __len__(self):
        return len(self.manifest)

    def __getitem__(self, i):
        u = self.manifest[i]
        return torch.tensor(u.words), u.speaker, u.seconds


MANIFEST = []


def prepare():
    if not MANIFEST:
        MANIFEST.extend(Utterance(f"wav/{k // 100:05d}/{k:07d}.flac", k % 2300, 1.0 + k % 150 / 10.0,
                                  (k % 997, k % 991, k % 983, k % 977)) for k in range(ROWS))


def make_loader():
    ds = Corpus(MANIFEST)
    return DataLoader(ds, batch_size=64, sampler=RandomSampler(ds, num_samples=1920), num_workers=2,
                      multiprocessing_context="spawn")
