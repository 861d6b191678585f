"""uint8 clips become float64 (/ 255.0) in the worker and cross to the main process so."""
import os
import tempfile

import numpy as np
from torch.utils.data import DataLoader, Dataset

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "gesture-clips-as-double")
PATH = os.path.join(ROOT, "gestures.npy")
FRAMES, SIDE, N_CLIPS, PER_EPOCH = 16, 112, 240, 1440


def prepare():
    if os.path.exists(PATH):
        return
    os.makedirs(ROOT, exist_ok=True)
    rng = np.random.default_rng(5)
    tmp = f"{PATH}.{os.getpid()}.npy"
    out = np.lib.format.open_memmap(tmp, mode="w+", dtype=np.uint8, shape=(N_CLIPS, FRAMES, SIDE, SIDE, 3))
    block = rng.integers(0, 256, (20, FRAMES, SIDE, SIDE, 3), dtype=np.uint8)
    for k in range(0, N_CLIPS, 20):
        out[k:k + 20] = np.roll(block, k, axis=3)
    out.flush()
    del out
    os.replace(tmp, PATH)


class Gestures(Dataset):
    def __init__(self):
        self.clips = np.load(PATH, mmap_mode="r")

    def __len__(self):
        return PER_EPOCH

    def __getitem__(self, i):
        clip = np.array(self.clips[i % N_CLIPS])
        if np.random.rand() < 0.5:
            clip = clip[:, :, ::-1]
        return clip / 255.0, i % 27              # true division: float64


def consume(batch):
    x, y = batch
    x.float().mean()                             # the model wants float32


def make_loader():
    return DataLoader(Gestures(), batch_size=8, shuffle=True, num_workers=2)
