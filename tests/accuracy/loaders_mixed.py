"""Several causes in one loop, with shares that are known from how it is built.

Without workers the parts of a batch follow one another: a part's share of the loop is its time over
the sum of all. The largest is the first cause.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar

import torch
from torch.utils.data import DataLoader

from tests.accuracy.entries import HEALTHY
from tests.accuracy.loader import NO_STEPS, TINY, Items, Loader, compute

CPU = ("no_workers_cpu_bound", "decode_cpu")
WAITS = ("no_workers_latency_bound",)
BATCH_S = 0.04
ITEMS = 4


class Mixed(Loader):
    """Parts of a batch: computing items, waiting for items, the step."""

    severities = ("",)
    steps = NO_STEPS
    computes: ClassVar[float] = 0.0
    waits: ClassVar[float] = 0.0

    def make_loader(self) -> DataLoader[Any]:
        cpu_s = self.computes * BATCH_S / ITEMS
        wait_s = self.waits * BATCH_S / ITEMS

        def get(index: int) -> Any:
            compute(cpu_s)
            time.sleep(wait_s)
            return TINY

        return DataLoader(Items(60 * ITEMS, get), batch_size=ITEMS)

    def consume(self, batch: Any) -> None:
        time.sleep((1 - self.computes - self.waits) * BATCH_S)


class MostlyComputes(Mixed):
    causes = CPU
    computes, waits = 0.7, 0.2
    shares = (("no_workers_cpu_bound", 0.7), ("no_workers_latency_bound", 0.2))


class MostlyWaits(Mixed):
    causes = WAITS
    computes, waits = 0.2, 0.7
    shares = (("no_workers_cpu_bound", 0.2), ("no_workers_latency_bound", 0.7))


class WaitsAndSteps(Mixed):
    causes = WAITS
    computes, waits = 0.0, 0.65
    shares = ((HEALTHY, 0.35), ("no_workers_latency_bound", 0.65))


class ComputesAndSteps(Mixed):
    causes = CPU
    computes, waits = 0.65, 0.0
    shares = ((HEALTHY, 0.35), ("no_workers_cpu_bound", 0.65))


class AllThree(Mixed):
    causes = CPU
    computes, waits = 0.5, 0.3
    shares = (
        ("no_workers_cpu_bound", 0.5),
        ("no_workers_latency_bound", 0.3),
        (HEALTHY, 0.2),
    )


class JoinsAndWaits(Mixed):
    """Joining the items takes longer than waiting for them."""

    causes = ("slow_collate",)
    computes, waits = 0.0, 0.3
    shares = (("slow_collate", 0.6), ("no_workers_latency_bound", 0.3))

    def make_loader(self) -> DataLoader[Any]:
        def get(index: int) -> Any:
            time.sleep(self.waits * BATCH_S / ITEMS)
            return TINY

        def join(items: list[Any]) -> Any:
            compute(0.6 * BATCH_S)
            return torch.stack(items)

        return DataLoader(Items(60 * ITEMS, get), batch_size=ITEMS, collate_fn=join)

    def consume(self, batch: Any) -> None:
        time.sleep(0.1 * BATCH_S)
