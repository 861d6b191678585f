"""What every loader of the corpus offers, and how severe its trouble is.

A loader has what a user's module would have: `prepare()` (not timed), `make_loader()`,
`consume(batch)`, `EPOCHS`, `MAX_BATCHES`. The severest variant has no step of its own; milder ones
do something else beside the loader for a known part of the time.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar

import torch

# The severest first: the others' steps are as long as its batches tell.
SEVERITIES = ("severe", "clear", "mild")

# Step over batch without a step, where the loader stands still during the step: it costs 1, 2/3 and
# 2/5 of the loop. And where workers go on meanwhile: 1, 2/3 and 1/3.
STEPS_ALONE = {"severe": 0.0, "clear": 0.5, "mild": 1.5}
STEPS_BESIDE = {"severe": 0.0, "clear": 0.34, "mild": 0.67}
NO_STEPS: dict[str, float] = {}  # severities are a dial of the loader's own

TINY = torch.zeros(4)


class CannotRun(Exception):
    """This machine lacks what the loader needs; the text says what."""


class Loader:
    """A loader with one trouble, or with none."""

    causes: ClassVar[tuple[str, ...]] = ()
    advice: ClassVar[tuple[str, ...]] = ()
    shares: ClassVar[tuple[tuple[str, float], ...]] = ()
    severities: ClassVar[tuple[str, ...]] = SEVERITIES
    steps: ClassVar[dict[str, float]] = STEPS_ALONE
    EPOCHS: int = 1
    MAX_BATCHES: int | None = None

    def __init__(self, severity: str, step_s: float = 0.0) -> None:
        self.severity = severity
        self.step_s = step_s
        self._folder: Path | None = None

    @property
    def level(self) -> int:
        """0 for the severest; for troubles that have a dial of their own."""
        return SEVERITIES.index(self.severity)

    def prepare(self) -> None:
        """What happens before the cell that is profiled."""

    def make_loader(self) -> Iterable[Any]:
        raise NotImplementedError

    def consume(self, batch: Any) -> None:
        if self.step_s:
            time.sleep(self.step_s)  # a device computes, this process waits

    def clean_up(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def folder(self) -> Path:
        """A folder of this run alone, removed after it."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="run-", dir=data_folder()))
        return self._folder

    def shared(self, name: str, build: Callable[[Path], None]) -> Path:
        """A folder that `build` fills once for all runs of a recording."""
        target = data_folder() / name
        if not target.exists():
            made = Path(tempfile.mkdtemp(prefix="new-", dir=data_folder()))
            build(made)
            try:
                made.rename(target)
            except OSError:  # another run was first
                shutil.rmtree(made, ignore_errors=True)
        return target


def data_folder() -> Path:
    """Where loaders keep their data: the recorder makes it and removes it."""
    return Path(os.environ.get("IOSCOPE_ACCURACY_DATA") or tempfile.gettempdir())


def compute(seconds: float) -> None:
    """Pure Python that uses `seconds` of this thread's CPU."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(300))


class Items(torch.utils.data.Dataset[Any]):
    """`count` items, each made by `get(index)`."""

    def __init__(self, count: int, get: Callable[[int], Any]) -> None:
        self.count = count
        self.get = get

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        return self.get(index)
