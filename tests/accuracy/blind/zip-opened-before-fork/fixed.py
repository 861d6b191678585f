"""Each worker opens the zip itself."""
import io
import os
import tempfile
import zipfile

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

PATH = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "zip-opened-before-fork", "arrays.zip")
N = 400


def prepare():
    os.makedirs(os.path.dirname(PATH), exist_ok=True)
    if not os.path.exists(PATH):
        rng = np.random.default_rng(0)
        with zipfile.ZipFile(PATH, "w", zipfile.ZIP_STORED) as out:
            for k in range(N):
                raw = io.BytesIO()
                np.save(raw, rng.integers(0, 255, (128, 1024), dtype=np.uint8))
                out.writestr(f"{k}.npy", raw.getvalue())


class Zipped(Dataset):
    def __init__(self, path):
        self.path, self.archive = path, None
        with zipfile.ZipFile(path) as archive:
            self.names = sorted(archive.namelist())

    def __len__(self):
        return 4 * len(self.names)

    def __getitem__(self, i):
        if self.archive is None:
            self.archive = zipfile.ZipFile(self.path)
        raw = self.archive.read(self.names[i % N])
        return torch.from_numpy(np.load(io.BytesIO(raw))[:, :16].copy())


def make_loader():
    return DataLoader(Zipped(PATH), batch_size=16, num_workers=3)
