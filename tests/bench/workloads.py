"""Three loaders whose time goes to different places, and one with a dial for its cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from photos import photo_folder
from PIL import Image
from torch.utils.data import DataLoader, Dataset

WORKERS = 2
PHOTOS = 600


class Photographs(Dataset[torch.Tensor]):
    """Decode-bound: JPEG files to 224 x 224 tensors."""

    def __init__(self, folder: Path) -> None:
        self.files = sorted(folder.glob("*/*.jpg"))

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> torch.Tensor:
        image = Image.open(self.files[index]).convert("RGB").resize((224, 224))
        return torch.from_numpy(np.array(image)).permute(2, 0, 1)


class PythonLoop(Dataset[int]):
    """Pure Python: `rounds` steps of an interpreter loop for each sample, the same sample for any
    number of rounds: a comparison names no winner between loaders of different data."""

    def __init__(self, samples: int, rounds: int = 12_000) -> None:
        self.samples = samples
        self.rounds = rounds

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> int:
        total = index
        for step in range(self.rounds):
            total = (total * 31 + step) & 0xFFFFFF
        return index


class TinyTensors(Dataset[torch.Tensor]):
    """Almost nothing a sample: what is left is the loader's own work for each batch."""

    def __init__(self, samples: int) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([index, index + 1])


def decode_bound(batches: int = 12) -> DataLoader[Any]:
    """`batches` batches of 16 photographs."""
    photographs = Photographs(photo_folder(count=PHOTOS))
    photographs.files = photographs.files[: 16 * batches]
    return DataLoader(photographs, batch_size=16, num_workers=WORKERS)


def pure_python(batches: int = 60) -> DataLoader[Any]:
    return DataLoader(PythonLoop(32 * batches), batch_size=32, num_workers=WORKERS)


def tiny_batch(batches: int = 1500) -> DataLoader[Any]:
    return DataLoader(TinyTensors(4 * batches), batch_size=4, num_workers=WORKERS)


WORKLOADS: dict[str, Callable[[], DataLoader[Any]]] = {
    "decode-bound": decode_bound,
    "pure Python": pure_python,
    "tiny batches": tiny_batch,
}


def samples_in(loader: DataLoader[Any]) -> int:
    return len(loader.dataset)  # type: ignore[arg-type]
