"""most letters have their text at hand, one in twenty-five waits for an OCR service."""
import time

import torch
from torch.utils.data import DataLoader, Dataset

N_LETTERS = 400


class Letters(Dataset):
    """The two reads are simulated: a cached transcript in 4 ms, a fresh one in 400 ms."""

    def __init__(self):
        g = torch.Generator().manual_seed(3)
        self.missing = set()
        for block in range(0, N_LETTERS, 25):
            self.missing.add(block + int(torch.randint(0, 25, (1,), generator=g)))

    def __len__(self):
        return N_LETTERS

    def transcript(self, k):
        time.sleep(0.400 if k in self.missing else 0.004)
        return [(k * 31 + j * 17) % 255 + 1 for j in range(40 + k % 20)]

    def __getitem__(self, k):
        return torch.tensor(self.transcript(k), dtype=torch.long)


def pad(rows):
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


def consume(batch):
    time.sleep(0.008)


def make_loader():
    return DataLoader(Letters(), batch_size=2, num_workers=4, collate_fn=pad)
