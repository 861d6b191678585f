"""Datasets for the tests of trials; importable, so that spawned workers find them."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, get_worker_info


def random_states() -> tuple[Any, ...]:
    """The global random states of all three libraries, by value."""
    drawn: Any = np.random.get_state(legacy=True)
    return random.getstate(), drawn[1].tolist(), drawn[2], torch.get_rng_state().tolist()


class Sleeping(Dataset[Any]):
    """Each sample waits `wait_s`, so that workers overlap even on one core."""

    def __init__(self, length: int = 400, wait_s: float = 0.004) -> None:
        self.length, self.wait_s = length, wait_s

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        time.sleep(self.wait_s)
        return torch.full((8,), float(index)), index


class Raising(Sleeping):
    def __getitem__(self, index: int) -> Any:
        if index == 20:
            raise LookupError("sample 20 is <b>broken</b>")
        return super().__getitem__(index)


class Hanging(Sleeping):
    def __getitem__(self, index: int) -> Any:
        if index == 20:
            time.sleep(3600)
        return super().__getitem__(index)


class Hoarding(Sleeping):
    """Keeps 20 MB more for every sample."""

    def __init__(self) -> None:
        super().__init__(4000, 0.01)
        self.kept: list[Any] = []

    def __getitem__(self, index: int) -> Any:
        self.kept.append(np.ones(20_000_000, np.uint8))
        return super().__getitem__(index)


class KillingWorker(Sleeping):
    """The worker that meets sample 20 is killed, as the kernel does when memory runs out."""

    def __getitem__(self, index: int) -> Any:
        if index == 20 and get_worker_info() is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(index)


class Augmented(Sleeping):
    """Contents drawn from the global random states of all three libraries."""

    def __getitem__(self, index: int) -> Any:
        noise = random.random() + np.random.rand() + float(torch.rand(()))
        return torch.full((8,), index + noise), index


class Multiplying(Sleeping):
    """Threads of OpenMP are used in the main process."""

    def __getitem__(self, index: int) -> Any:
        return (torch.ones(400, 400) @ torch.ones(400, 400))[0, :8], index


class Local(Sleeping):
    """Cannot be pickled, not even by value."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.lock = threading.Lock()


class Counting(IterableDataset[Any]):
    """`shared`: workers share the numbers out; else each yields all of them."""

    def __init__(self, length: int, shared: bool) -> None:
        self.length, self.shared = length, shared

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info is not None and self.shared else (0, 1)
        for number in range(first, self.length, step):
            yield torch.tensor([number, number * number])


class Losing(Counting):
    """Workers share the numbers out, but lose every third."""

    def __iter__(self) -> Iterator[Any]:
        skip = get_worker_info() is not None
        return (n for i, n in enumerate(super().__iter__()) if not (skip and i % 3 == 0))


def make_jpegs(folder: Path, number: int = 32, size: tuple[int, int] = (1000, 800)) -> list[str]:
    """Smooth pictures with some detail, each another one."""
    noise = np.random.default_rng(7)
    paths = []
    for at in range(number):
        small = Image.fromarray(noise.integers(0, 255, (10, 12, 3), dtype=np.uint8))
        path = folder / f"{at}.jpg"
        small.resize(size, Image.Resampling.BICUBIC).save(path, quality=90)
        paths.append(str(path))
    return paths


class Pictures(Dataset[Any]):
    """Opens a JPEG and treats it in one of several ways."""

    def __init__(self, paths: list[str], way: str = "resize", size: int = 128) -> None:
        self.paths, self.way, self.size = paths, way, size

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        image: Image.Image = Image.open(self.paths[index])
        if self.way == "drafting":
            image.draft("RGB", (self.size, self.size))
        if self.way == "thumbnail":
            image.thumbnail((self.size, self.size))
        image = image.convert("RGB")
        if self.way == "crop":
            image = image.crop((100, 100, 400, 400))
        if self.way == "pixels":
            np.asarray(image).mean()
        if self.way == "box":
            image = image.resize((self.size, self.size), box=(10, 10, 300, 300))
        image = image.resize((self.size, self.size))
        return torch.from_numpy(np.array(image)), index
