"""Troubles of the step itself: the loader waits for the consumer."""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import time
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from tests.accuracy.loader import NO_STEPS, TINY, Items, Loader, compute


class Consumer(Loader):
    """A loader that is ready at once; every severity is a dial of its own."""

    steps = NO_STEPS

    def make_loader(self) -> DataLoader[Any]:
        return DataLoader(Items(1_600, lambda index: TINY), batch_size=8)


class Checkpoints(Consumer):
    """Every few steps the weights are written and forced to the device."""

    causes = ("checkpoint_stall",)
    advice = ("thread", "background", "asynchron", "less often", "fewer")

    def prepare(self) -> None:
        self.weights = np.random.default_rng(0).standard_normal(8_000_000).astype(np.float32)
        self.done = 0
        self.path = self.folder / "weights.npy"

    def consume(self, batch: Any) -> None:
        time.sleep(0.008)
        self.done += 1
        if self.done % (8, 14, 25)[self.level] == 0:
            with open(self.path, "wb") as file:
                np.save(file, self.weights)
                file.flush()
                os.fsync(file.fileno())


class LogsEveryStep(Consumer):
    """Every step writes statistics of the weights to a log."""

    causes = ("step_overhead",)
    advice = ("every n", "every few", "less often", "fewer", "each step", "every step", "th step")

    def prepare(self) -> None:
        self.log = logging.Logger("training", logging.INFO)
        self.log.addHandler(logging.FileHandler(self.folder / "log.txt"))
        self.weights = torch.randn((12_000, 6_000, 3_000)[self.level])

    def consume(self, batch: Any) -> None:
        time.sleep(0.005)
        self.log.info("weights %s", json.dumps(self.weights.tolist()))

    def clean_up(self) -> None:
        for handler in self.log.handlers:
            handler.close()
        super().clean_up()


class StepOnAllThreads(Consumer):
    """A small network computes on two native threads while two workers keep two cores busy."""

    causes = ("thread_oversubscription",)
    advice = ("set_num_threads", "one thread")
    severities = ("severe",)

    def prepare(self) -> None:
        torch.set_num_threads(2)
        self.net = small_network()

    def make_loader(self) -> DataLoader[Any]:
        def get(index: int) -> Any:
            compute(0.004)
            return torch.zeros(3, 48, 48)

        return DataLoader(Items(320, get), batch_size=16, num_workers=2)

    def consume(self, batch: Any) -> None:
        self.net(batch).square().mean().backward()


def small_network() -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 16, 3),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(16, 10),
    )


class CollectsGarbage(Consumer):
    """Millions of Python objects live, and the loop asks for a collection every few steps."""

    causes = ("gc_pauses",)
    advice = ("gc.freeze", "gc.disable", "freeze", "collect")

    def prepare(self) -> None:
        self.rows = [[index, str(index)] for index in range(400_000)]
        self.done = 0

    def make_loader(self) -> DataLoader[Any]:
        return DataLoader(Items(480, lambda index: TINY), batch_size=8)

    def consume(self, batch: Any) -> None:
        time.sleep(0.012)
        self.done += 1
        if self.done % (1, 3, 6)[self.level] == 0:
            gc.collect()

    def clean_up(self) -> None:
        with contextlib.suppress(AttributeError):
            del self.rows
        super().clean_up()
