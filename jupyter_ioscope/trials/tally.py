"""Counts the batches of one run, and says when enough of them were timed."""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple

from jupyter_ioscope.trials import tree
from jupyter_ioscope.trials.step import NO_STEP, Step


class Plan(NamedTuple):
    """How long to run. `discard` batches after each start of an epoch say nothing; the stretch
    then ends after `samples` (0: after `seconds` and `batches`), at a whole round of the workers,
    or after `max_s` in any case. In mode "epochs" so many are let pass and `epochs` are timed.
    `step` stands in for the user's own time with each batch."""

    mode: str  # "steady" or "epochs"
    seed: int
    discard: int
    samples: int = 0
    seconds: float = 0.0
    batches: int = 1
    max_s: float = 60.0
    epochs: int = 1
    let_pass: int = 1
    step: Step = NO_STEP


class Meter:
    """Adds up the timed parts: time from one delivered batch to another, with CPU at both ends."""

    def __init__(self) -> None:
        self.ns = self.cpu_ns = self.samples = self.batches = 0
        self.busy_ns = 0
        self._open: tuple[int, int, int] | None = None
        self._last_ns = 0

    @property
    def running(self) -> bool:
        return self._open is not None

    def start(self) -> None:
        cpu, busy = tree.own_tree_cpu_ns(), tree.machine_busy_ns() or 0
        self._last_ns = time.monotonic_ns()
        self._open = (self._last_ns, cpu, busy)

    def add(self, samples: int) -> None:
        self._last_ns = time.monotonic_ns()
        self.samples += samples
        self.batches += 1

    def elapsed_s(self) -> float:
        part = self._last_ns - self._open[0] if self._open else 0
        return (self.ns + part) / 1e9

    def stop(self, at_ns: int = 0) -> None:
        if self._open is None:
            return
        start_ns, cpu, busy = self._open
        self.ns += (at_ns or self._last_ns) - start_ns
        self.cpu_ns += tree.own_tree_cpu_ns() - cpu
        self.busy_ns += (tree.machine_busy_ns() or 0) - busy
        self._open = None


class Tally:
    """What one run delivered, and the part of it that was timed. Its age counts from when it was
    made, or from `begin`."""

    def __init__(self, plan: Plan, workers: int) -> None:
        self.plan, self.workers, self.meter = plan, workers, Meter()
        self.first_batch_s = 0.0
        self.discarded = self.delivered = self.delivered_samples = 0
        self.epoch_samples: list[int] = []
        self.epoch_batches: list[int] = []
        self._start_ns = time.monotonic_ns()

    def begin(self) -> None:
        self._start_ns = time.monotonic_ns()

    def arrived(self) -> None:
        """The next batch is here; called before anything else is done with it."""
        if not self.delivered:
            self.first_batch_s = self.age_s()
        self.delivered += 1

    def steady(self, number: int, samples: int) -> bool:
        """Note batch `number` (from 0) of an epoch; whether enough were timed."""
        self.counted(samples)
        if self._enough():
            return True
        if not self.meter.running and number + 1 >= self.plan.discard:
            self.meter.start()
        return False

    def counted(self, samples: int) -> None:
        """Note a batch: timed while the meter runs, else let pass."""
        if self.meter.running:
            self.meter.add(samples)
        else:
            self.discarded += 1

    def epoch_ended(self, batches: int, samples: int) -> None:
        if not batches:
            raise ValueError("the loader gave no batch at all in an epoch")
        self.epoch_batches.append(batches)
        self.epoch_samples.append(samples)

    def age_s(self) -> float:
        return (time.monotonic_ns() - self._start_ns) / 1e9

    def _enough(self) -> bool:
        meter, plan = self.meter, self.plan
        if not meter.running:
            return self.age_s() > plan.max_s
        if self.age_s() > plan.max_s:
            return meter.batches > 0
        # Batches of N workers come in bursts of N: only whole rounds are comparable.
        if self.workers and meter.batches % self.workers:
            return False
        if plan.samples:
            return meter.samples >= plan.samples
        return meter.batches >= plan.batches and meter.elapsed_s() >= plan.seconds

    def result(self) -> dict[str, Any]:
        """All of it, ready for JSON; the meter must have stopped."""
        meter = self.meter
        external = (meter.busy_ns - meter.cpu_ns) / meter.ns if meter.ns else 0.0
        return {
            "samples": meter.samples,
            "batches": meter.batches,
            "steady_s": meter.ns / 1e9,
            "cpu_s": meter.cpu_ns / 1e9,
            "external_cpu": max(0.0, external),
            "first_batch_s": self.first_batch_s,
            "discarded": self.discarded,
            "delivered_samples": self.delivered_samples,
            "delivered": self.delivered,
            "epoch_samples": self.epoch_samples,
            "epoch_batches": self.epoch_batches,
            "total_s": self.age_s(),
            # Once more at the end: a short trial is over between two looks of the parent.
            "memory_bytes": tree.memory_bytes([os.getpid(), *tree.descendants(os.getpid())]),
        }
