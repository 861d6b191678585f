"""A small trainer that validates every few steps; the validation loader starts anew each time."""
import torch
from torch.utils.data import DataLoader, Dataset


class Blobs(Dataset):
    def __init__(self, n, seed):
        self.n, self.seed = n, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        gen = torch.Generator().manual_seed(self.seed + i)
        x = torch.randn(3, 32, 32, generator=gen)
        return x, int(x.sum() > 0)


class DataModule:
    def train_dataloader(self):
        return DataLoader(Blobs(640, 1), batch_size=16, num_workers=2, persistent_workers=True)

    def val_dataloader(self):
        return DataLoader(Blobs(64, 10_000), batch_size=16, num_workers=2, persistent_workers=True)


class Trainer:
    def __init__(self, val_check_interval):
        self.every = val_check_interval
        self.model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 2))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)

    def training_step(self, batch):
        loss = torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def validate(self, loader):
        hits = total = 0
        for x, y in loader:
            hits += int((self.model(x).argmax(1) == y).sum())
            total += len(y)
        return hits / total

    def fit(self, data):
        val = data.val_dataloader()
        for step, batch in enumerate(data.train_dataloader(), 1):
            loss = self.training_step(batch)
            if step % self.every == 0:
                self.validate(val)
            yield loss


def make_loader():
    return Trainer(val_check_interval=2).fit(DataModule())
