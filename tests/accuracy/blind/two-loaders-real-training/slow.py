"""HEALTHY: semi-supervised training on the CPU, a labelled and an unlabelled loader in step."""
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

STEPS, BATCH = 45, 128
model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10))
optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
data = {}


def prepare():
    g = torch.Generator().manual_seed(0)
    data["labelled"] = TensorDataset(torch.randn(STEPS * 64, 512, generator=g),
                                     torch.randint(0, 10, (STEPS * 64,), generator=g))
    data["unlabelled"] = TensorDataset(torch.randn(STEPS * BATCH, 512, generator=g))


def by_batch(dataset, size):
    return DataLoader(dataset, batch_size=None, sampler=BatchSampler(RandomSampler(dataset), size, drop_last=True))


class Both:
    def __init__(self):
        self.labelled = by_batch(data["labelled"], 64)
        self.unlabelled = by_batch(data["unlabelled"], BATCH)

    def __len__(self):
        return STEPS

    def __iter__(self):
        return zip(self.labelled, self.unlabelled)


def make_loader():
    return Both()


def consume(batch):
    (x, y), (u,) = batch
    optimiser.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss = loss + 0.1 * (model(u) - model(u + 0.01 * torch.randn_like(u))).square().mean()
    loss.backward()
    optimiser.step()
