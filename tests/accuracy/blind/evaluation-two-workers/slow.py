"""Evaluation: quick samples, two workers that stay, a forward pass that takes its time."""
import torch
from torch.utils.data import DataLoader, Dataset

EPOCHS = 1
NET = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 5, padding=2), torch.nn.ReLU(), torch.nn.Conv2d(32, 32, 5, padding=2)).eval()
RESULTS = []


class Photos(Dataset):
    def __len__(self):
        return 320

    def __getitem__(self, i):
        return torch.full((3, 96, 96), i / 320), i


def make_loader():
    return DataLoader(Photos(), batch_size=8, num_workers=2, persistent_workers=True)


@torch.inference_mode()
def consume(batch):
    images, names = batch
    scores = NET(images).mean((1, 2, 3))
    RESULTS.extend({"name": int(n), "score": float(s)} for n, s in zip(names, scores))
