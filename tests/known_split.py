"""A loader whose split is known because its functions take their own time.

Every sample waits `wait_ms` for one read of a slow file in `read_rows`, burns CPU in `burn`, and
for some samples waits for another read in `read_labels`. The batch carries how long each of them
was really blocked.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import torch
from torch.utils.data import DataLoader, Dataset

from tests.io_causes.slow_mount import slow_mount

BLOCK = 4096
PARTS = ("read_rows", "burn", "read_labels")


def blocked_ns() -> int:
    """Time that the calling thread has been off a core and not in line for one, up to a constant:
    on a busy machine a function also stands in line, and that is no wait for its file."""
    with open("/proc/thread-self/schedstat", "rb", buffering=0) as file:
        run, queue = (file.read() or b"0 0").split()[:2]
    return time.monotonic_ns() - int(run) - int(queue)


class Split(Dataset[torch.Tensor]):
    """`labels_every` 0 means that `read_labels` never waits."""

    def __init__(self, file: Path, samples: int, cpu_ms: float, labels_every: int = 0) -> None:
        self.file, self.samples, self.cpu_ms = file, samples, cpu_ms
        self.labels_every = labels_every
        self.fd = -1

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.fd < 0:
            self.fd = os.open(self.file, os.O_RDONLY)
        marks = [blocked_ns()]
        self.read_rows(index)
        marks.append(blocked_ns())
        self.burn()
        marks.append(blocked_ns())
        self.read_labels(index)
        marks.append(blocked_ns())
        return torch.tensor([b - a for a, b in pairwise(marks)])

    def read_rows(self, index: int) -> bytes:
        return os.pread(self.fd, BLOCK, index % 64 * BLOCK)

    def read_labels(self, index: int) -> bytes:
        if not self.labels_every or index % self.labels_every:
            return b""
        return os.pread(self.fd, BLOCK, index % 64 * BLOCK)

    def burn(self) -> int:
        until = time.thread_time_ns() + int(self.cpu_ms * 1e6)
        rounds = 0
        while time.thread_time_ns() < until:
            rounds += 1
        return rounds


class Truth(NamedTuple):
    """Nanoseconds that each function was blocked, over all samples."""

    read_rows: int
    burn: int
    read_labels: int


@contextmanager
def slow_file(folder: Path, wait_ms: float) -> Iterator[Path]:
    """A file of which every read takes `wait_ms` longer."""
    (folder / "rows.bin").write_bytes(os.urandom(64 * BLOCK))
    with slow_mount(folder, read_s=wait_ms / 1e3) as point:
        yield point / "rows.bin"


def iterate(dataset: Split, workers: int, batch_size: int) -> Truth:
    """One pass over the loader."""
    total = torch.zeros(len(PARTS), dtype=torch.int64)
    loader = DataLoader(dataset, batch_size=batch_size, num_workers=workers, shuffle=False)
    for batch in loader:
        total += batch.sum(dim=0)
    return Truth(*(int(value) for value in total))
