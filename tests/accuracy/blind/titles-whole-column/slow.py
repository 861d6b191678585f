"""News headlines from a datasets.Dataset, wrapped for a DataLoader by somebody who thinks in data frames."""
import os
import shutil
import tempfile

BASE = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "titles-whole-column")
NEWS = os.path.join(BASE, "news")
os.environ.setdefault("HF_HOME", os.path.join(BASE, "hf_home"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import datasets
import torch
from torch.utils.data import DataLoader, Dataset, RandomSampler

datasets.disable_progress_bars()
N = 40_000


def prepare():
    if os.path.isdir(NEWS):
        return
    os.makedirs(BASE, exist_ok=True)
    tmp = f"{NEWS}.{os.getpid()}"
    datasets.Dataset.from_dict({
        "title": [f"Council {i % 97} votes on item {i} of the spring agenda" for i in range(N)],
        "label": [i * 7 % 20 for i in range(N)],
        "clicks": [i * 13 % 1000 for i in range(N)],
    }).save_to_disk(tmp)
    try:
        os.rename(tmp, NEWS)
    except OSError:
        shutil.rmtree(tmp, ignore_errors=True)


class Headlines(Dataset):
    def __init__(self, news):
        self.news = news

    def __len__(self):
        return len(self.news)

    def __getitem__(self, i):
        title = self.news["title"][:][i]
        label = self.news["label"][:][i]
        letters = torch.tensor(list(title.encode()[:32].ljust(32)))
        return letters, label


def make_loader():
    ds = Headlines(datasets.load_from_disk(NEWS))
    return DataLoader(ds, batch_size=20, sampler=RandomSampler(ds, num_samples=1100))
