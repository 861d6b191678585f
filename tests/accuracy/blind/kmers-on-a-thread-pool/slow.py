"""a batch is fetched through __getitems__ with eight threads that run plain Python."""
import random
from concurrent.futures import ThreadPoolExecutor

import torch
from torch.utils.data import DataLoader, Dataset

K = 6
CODE = {"A": 0, "C": 1, "G": 2, "T": 3}
READS = []


def prepare():
    rnd = random.Random(11)
    for _ in range(48):
        READS.append("".join(rnd.choices("ACGT", k=60_000)))


def kmer_profile(read, start):
    """Counts of canonical 6-mers of a window: a rolling code of both strands, letter by letter."""
    mask = 4 ** K - 1
    top = 2 * (K - 1)
    counts = [0] * (4 ** K)
    fwd = rev = 0
    for n, base in enumerate(read[start:start + 50_000]):
        c = CODE[base]
        fwd = ((fwd << 2) | c) & mask
        rev = (rev >> 2) | ((3 - c) << top)
        if n >= K - 1:
            counts[fwd if fwd < rev else rev] += 1
    return counts


class Metagenome(Dataset):
    def __init__(self, n_items, threads=8):
        self.n_items = n_items
        self.pool = ThreadPoolExecutor(max_workers=threads)

    def __len__(self):
        return self.n_items

    def one(self, i):
        start = (i * 7919) % 10_000
        return torch.tensor(kmer_profile(READS[i % len(READS)], start), dtype=torch.float32), i % 12

    def __getitem__(self, i):
        return self.one(i)

    def __getitems__(self, indices):
        return list(self.pool.map(self.one, indices))


def make_loader():
    return DataLoader(Metagenome(640), batch_size=16, shuffle=True)
