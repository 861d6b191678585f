"""The same work in two worker processes."""
import torch
from torch.utils.data import DataLoader, Dataset

BATCHES, SIZE = 60, 8


def jitter(points, seed):
    out = []
    state = seed
    for x, y, z in points:
        state = (state * 1103515245 + 12345) % 2147483648
        d = state / 2147483648 - 0.5
        out.append((x * 0.8 - y * 0.6 + d, x * 0.6 + y * 0.8 - d, z + d * 0.1))
    return out


CLOUD = [(i * 0.1, i * 0.2, i * 0.3) for i in range(6_000)]


class Clouds(Dataset):
    def __len__(self):
        return BATCHES * SIZE

    def __getitem__(self, i):
        return torch.tensor(jitter(CLOUD, i))


def make_loader():
    return DataLoader(Clouds(), batch_size=SIZE, num_workers=2)


def consume(batch):
    batch.mean().item()
