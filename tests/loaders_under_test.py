"""Datasets and loaders at module level, so that spawned workers can import them."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset


class Numbers(Dataset[Any]):
    """Item i is (i, a random number); making it takes `busy_s` of CPU and `sleep_s` of waiting."""

    def __init__(self, length: int = 24, busy_s: float = 0.0, sleep_s: float = 0.0) -> None:
        self.length = length
        self.busy_s = busy_s
        self.sleep_s = sleep_s

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, float]:
        burn(self.busy_s)
        if self.sleep_s:
            time.sleep(self.sleep_s)
        return torch.tensor(index), torch.rand(2), random.random()


class Stream(IterableDataset[Any]):
    """The numbers below `length`, shared out among the workers."""

    def __init__(self, length: int = 22) -> None:
        self.length = length

    def __iter__(self) -> Iterator[torch.Tensor]:
        info = torch.utils.data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for index in range(first, self.length, step):
            yield torch.tensor(index)


class OwnIter(DataLoader[Any]):
    """A loader with an `__iter__` of its own, as Accelerate and Lightning have."""

    def __iter__(self) -> Any:
        yield from super().__iter__()


class Raises(Numbers):
    """Fails at one item, like a damaged file."""

    def __getitem__(self, index: int) -> Any:
        if index == 13:
            raise KeyError("<b>thirteen</b>")
        return super().__getitem__(index)


class Killed(Numbers):
    """One item takes its worker down."""

    def __getitem__(self, index: int) -> Any:
        if index == 13:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(index)


class Hangs(Numbers):
    """One item never comes."""

    def __getitem__(self, index: int) -> Any:
        if index == 13:
            time.sleep(3600)
        return super().__getitem__(index)


class Unpicklable(Numbers):
    """Holds something that cannot travel to a spawned worker."""

    def __init__(self) -> None:
        super().__init__()
        self.handle = lambda: None


def burn(seconds: float) -> None:
    """Use so much CPU time of this thread."""
    end_ns = time.thread_time_ns() + int(seconds * 1e9)
    while time.thread_time_ns() < end_ns:
        pass


def bad_collate(items: list[Any]) -> Any:
    raise RuntimeError("cannot collate")
