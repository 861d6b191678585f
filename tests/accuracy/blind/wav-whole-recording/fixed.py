"""only the frames of the crop are read"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "wav-whole-recording")

import random
import wave

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

FILES, RATE, SECONDS = 8, 44_100, 60


def wav(k):
    return os.path.join(ROOT, f"track{k}.wav")


def prepare():
    os.makedirs(ROOT, exist_ok=True)
    rng = np.random.default_rng(0)
    for k in range(FILES):
        if os.path.exists(wav(k)):
            continue
        with wave.open(wav(k), "wb") as w:
            w.setnchannels(2)
            w.setsampwidth(2)
            w.setframerate(RATE)
            w.writeframes(rng.integers(-9_000, 9_000, (SECONDS * RATE, 2), dtype=np.int16).tobytes())


class Crops(Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return 320

    def __getitem__(self, i):
        path = self.files[i % len(self.files)]
        start = random.randrange((SECONDS - 1) * RATE)
        with wave.open(path) as w:
            w.setpos(start)
            audio = w.readframes(RATE)
        audio = np.frombuffer(audio, np.int16).reshape(-1, 2).astype(np.float32) / 32768
        return torch.from_numpy(audio.T.copy())


def make_loader():
    return DataLoader(Crops([wav(k) for k in range(FILES)]), batch_size=8)
