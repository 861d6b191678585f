"""lossless JPEG 2000 slices, used at full size; both cores decode all the time."""
import os
import shutil
import tempfile
import time

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "tomography-jpeg2000")
DISTINCT, N_SLICES, SIDE = 16, 600, 512


def prepare():
    if os.path.isdir(ROOT):
        return
    tmp = f"{ROOT}.{os.getpid()}"
    os.makedirs(tmp, exist_ok=True)
    rng = np.random.default_rng(13)
    for k in range(DISTINCT):
        coarse = Image.fromarray(rng.integers(0, 256, (40, 40), dtype=np.uint8)).resize((SIDE, SIDE), Image.BICUBIC)
        grain = rng.integers(-6, 7, (SIDE, SIDE))
        img = Image.fromarray((np.asarray(coarse).astype(np.int16) + grain).clip(0, 255).astype(np.uint8))
        first = os.path.join(tmp, f"slice_{k:04d}.jp2")
        img.save(first, irreversible=False)
        for copy in range(k + DISTINCT, N_SLICES, DISTINCT):
            shutil.copyfile(first, os.path.join(tmp, f"slice_{copy:04d}.jp2"))
    try:
        os.rename(tmp, ROOT)
    except OSError:
        shutil.rmtree(tmp, ignore_errors=True)


class Slices(Dataset):
    def __len__(self):
        return N_SLICES

    def __getitem__(self, i):
        with Image.open(os.path.join(ROOT, f"slice_{i:04d}.jp2")) as im:
            return torch.from_numpy(np.array(im)), i % 2


def consume(batch):
    time.sleep(0.003)


def make_loader():
    return DataLoader(Slices(), batch_size=8, num_workers=2, shuffle=True)
