"""Samplers of stacks keep nothing of the user's alive: batches go when their function ends."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_ioscope.capture._blocked_sampler import BlockedSampler
from jupyter_ioscope.capture.stacks import InProcessStacks

SAMPLERS: dict[str, Callable[[str], Any]] = {
    "stacks by state": lambda path: BlockedSampler(path, threading.get_native_id(), 200),
    "in-process stacks": lambda path: InProcessStacks(path, 200),
}


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Batch:
    pass


def step() -> weakref.ref[Batch]:
    batch = Batch()
    time.sleep(0.05)  # seen here several times
    return weakref.ref(batch)


@pytest.mark.timeout(180)
@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("name", sorted(SAMPLERS))
def test_a_batch_is_freed_as_soon_as_its_function_returns(name: str, tmp_path: Path) -> None:
    sampler = SAMPLERS[name](str(tmp_path / "stacks"))
    sampler.start()
    try:
        alive = sum(step()() is not None for _ in range(20))
    finally:
        sampler.stop()
    assert alive == 0
