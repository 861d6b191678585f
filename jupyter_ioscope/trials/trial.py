"""One timed run of an arm, inside the process it was given."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from jupyter_ioscope.trials import tree
from jupyter_ioscope.trials.build import build
from jupyter_ioscope.trials.counting import Beats, Indices, seed_all, shut_down, worker_ids
from jupyter_ioscope.trials.page_cache import LearnFiles, mapped_files
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.step import NO_STEP, Step


class Plan(NamedTuple):
    """How long to run. `discard` batches after each start of an epoch say nothing; the stretch
    then ends after `samples` (0: after `seconds` and `batches`), at a whole round of the workers,
    or after `max_s` in any case. In mode "epochs" one epoch is let pass and `epochs` are timed.
    `step` stands in for the user's own time with each batch."""

    mode: str  # "steady" or "epochs"
    seed: int
    discard: int
    samples: int = 0
    seconds: float = 0.0
    batches: int = 1
    max_s: float = 60.0
    epochs: int = 1
    step: Step = NO_STEP


class _Meter:
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


def timed(
    emit: Any, stop: Any, folder: str, spec: LoaderSpec, plan: Plan, learn: bool
) -> dict[str, Any]:
    """Run `plan` on a new loader of `spec`. `learn` also notes which files are opened (never in a
    timed trial: it costs a little at every open)."""
    spec, files = prepared(spec, folder, learn)
    seed_all(plan.seed)
    run = _Run(emit, stop, spec, plan)
    with run.indices.noted():
        result = run.epochs() if plan.mode == "epochs" else run.steady()
        if files is not None:
            result["files"] = sorted(files.found() | mapped_files(run.workers))
        run.close(own_process=bool(folder))
    return result


def prepared(spec: LoaderSpec, folder: str, learn: bool) -> tuple[LoaderSpec, LearnFiles | None]:
    """Make the in-child changes of `spec` here and have its workers make them too."""
    files = LearnFiles(f"{folder}/opened") if learn and folder else None
    if files is not None:
        spec = spec.changed(in_child=(*spec.in_child, files))
    for change in spec.in_child:
        change.install()
    return spec, files


class _Run:
    def __init__(self, emit: Any, stop: Any, spec: LoaderSpec, plan: Plan) -> None:
        self.spec, self.plan, self.stop = spec, plan, stop
        self.indices, self.meter, self.beats = Indices(spec), _Meter(), Beats(emit)
        self.start_ns = time.monotonic_ns()
        self.loader = build(spec)
        self.iterator: Any = None
        self.workers: list[int] = []
        self.first_batch_s = 0.0
        self.discarded = self.delivered = self.delivered_samples = 0
        self.epoch_samples: list[int] = []
        self.epoch_batches: list[int] = []

    def steady(self) -> dict[str, Any]:
        done = False
        while not done:
            samples = batches = 0
            for number, count in self._epoch():
                batches, samples = number + 1, samples + count
                if self.meter.running:
                    self.meter.add(count)
                else:
                    self.discarded += 1
                if self._enough():
                    done = True
                    break
                if not self.meter.running and number + 1 >= self.plan.discard:
                    self.meter.start()
            else:
                self._epoch_ended(batches, samples)
            self.meter.stop()
            # An epoch that ends before anything is steady will do so again.
            done = done or self.meter.batches == 0
        return self._result()

    def epochs(self) -> dict[str, Any]:
        for epoch in range(1 + self.plan.epochs):
            samples = batches = 0
            for number, count in self._epoch():
                batches, samples = number + 1, samples + count
                if self.meter.running:
                    self.meter.add(count)
                else:
                    self.discarded += 1
            self._epoch_ended(batches, samples)
            if epoch == 0:
                self.meter.start()
        # An epoch is over when the loader says so, with its workers' end.
        self.meter.stop(time.monotonic_ns())
        return self._result()

    def _epoch(self) -> Iterator[tuple[int, int]]:
        """(number, samples) of each batch; the newest batch stays alive, as in a user's loop."""
        self.indices.ids.clear()
        self.iterator = iter(self.loader)
        self.workers = worker_ids(self.iterator)
        self.beats(self.delivered, self.delivered_samples, self.workers)
        for number, batch in enumerate(self.iterator):
            if not self.delivered:
                self.first_batch_s = (time.monotonic_ns() - self.start_ns) / 1e9
            count = self.indices.samples(number, batch)
            self.delivered += 1
            self.delivered_samples += count
            self.beats(self.delivered, self.delivered_samples)
            if self.stop():
                raise InterruptedError("stopped")
            yield number, count
            self.plan.step.run()

    def _epoch_ended(self, batches: int, samples: int) -> None:
        if not batches:
            raise ValueError("the loader gave no batch at all in an epoch")
        self.epoch_batches.append(batches)
        self.epoch_samples.append(samples)

    def _enough(self) -> bool:
        meter, plan = self.meter, self.plan
        if not meter.running:
            return self._age_s() > plan.max_s
        if self._age_s() > plan.max_s:
            return meter.batches > 0
        # Batches of N workers come in bursts of N: only whole rounds are comparable.
        if self.spec.num_workers and meter.batches % self.spec.num_workers:
            return False
        if plan.samples:
            return meter.samples >= plan.samples
        return meter.batches >= plan.batches and meter.elapsed_s() >= plan.seconds

    def _age_s(self) -> float:
        return (time.monotonic_ns() - self.start_ns) / 1e9

    def _result(self) -> dict[str, Any]:
        meter = self.meter
        steady_s = meter.ns / 1e9
        external = (meter.busy_ns - meter.cpu_ns) / meter.ns if meter.ns else 0.0
        return {
            "samples": meter.samples,
            "batches": meter.batches,
            "steady_s": steady_s,
            "cpu_s": meter.cpu_ns / 1e9,
            "external_cpu": max(0.0, external),
            "first_batch_s": self.first_batch_s,
            "discarded": self.discarded,
            "delivered_samples": self.delivered_samples,
            "delivered": self.delivered,
            "epoch_samples": self.epoch_samples,
            "epoch_batches": self.epoch_batches,
            "total_s": self._age_s(),
            # Once more at the end: a short trial is over between two looks of the parent.
            "memory_bytes": tree.memory_bytes([os.getpid(), *tree.descendants(os.getpid())]),
        }

    def close(self, own_process: bool) -> None:
        iterator, self.iterator = self.iterator, None
        self.loader._iterator = None
        shut_down(iterator, own_process)
