"""Loops with batches that stand out, built by hand."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import MappingProxyType

from jupyter_ioscope.model.diagnosis import Outlier, Outliers
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, ThreadReadings
from jupyter_ioscope.model.records import Batch
from tests import builders
from tests.simulator import MS, PID


def loop(
    waits_ms: list[float], steps_ms: list[float], *, epoch_of: int = 10**9, cpu: bool = True
) -> Profile:
    """A loop without workers that waits and steps as given; its thread always runs."""
    base = builders.profile(0, batches=1)
    now = base.start_ns + 5 * MS
    rows: list[Batch] = []
    for index, (wait, step) in enumerate(zip(waits_ms, steps_ms, strict=True)):
        waited, done = now + int(wait * MS), now + int((wait + step) * MS)
        rows.append(
            Batch(index, index // epoch_of, 0, now, waited, done,
                  (waited - now) * cpu, (done - waited) * cpu, 8, -1, index)
        )  # fmt: skip
        now = done
    epochs = tuple(
        base.epochs[0]._replace(epoch=number, end_ns=now)
        for number in range(rows[-1].epoch + 1 if rows else 0)
    )
    consumer = thread(base, "consumer", PID, base.start_ns, now, lambda _: "running")
    return builders.without(
        base, batches=tuple(rows), fetches=(), epochs=epochs, end_ns=now + MS,
        threads=(consumer,), series=MappingProxyType({}), stacks=None,
    )  # fmt: skip


def thread(
    base: Profile, role: str, pid: int, first: int, last: int, doing: Callable[[int], str]
) -> ThreadReadings:
    """Readings of one thread at 25 Hz; `doing` gives the state at an instant."""
    times = tuple(range(first, last, 40 * MS))
    states = tuple(STATES.index(doing(t)) for t in times)
    run = sum(40 * MS for t in times if doing(t) == "running")
    return ThreadReadings(pid, pid, "python", role, -1, first, last, run, 0, 0, True, times, states)


def noisy(count: int, mean: float = 10.0, seed: int = 0) -> list[float]:
    rng = random.Random(seed)
    return [mean * max(0.3, rng.gauss(1, 0.15)) for _ in range(count)]


def span(value: Profile, batch: int, phase: str) -> tuple[int, int]:
    row = value.batches[batch]
    if phase == "wait":
        return row.wait_start_ns, row.wait_end_ns
    return row.wait_end_ns, row.step_end_ns


def with_states(value: Profile, where: tuple[int, int], state: str) -> Profile:
    """`value` as if its thread had been in a state in one stretch."""
    consumer = thread(
        value, "consumer", PID, value.start_ns, value.end_ns,
        lambda t: state if where[0] <= t < where[1] else "running",
    )  # fmt: skip
    return builders.without(value, threads=(consumer,))


def only(found: Outliers) -> Outlier:
    assert len(found.worst) == found.count == 1, found
    return found.worst[0]


def causes(row: Outlier) -> list[str]:
    return [likely.cause for likely in row.causes]


def slow_worker_fetch(more_ms: int, at: int = 60) -> Profile:
    """A profile of two workers in which one fetch took longer, and everything after it came later
    (worker 0's rows; what worker 1 does meanwhile is not changed)."""
    base = builders.profile(2, batches=120, fetch_ms=20, step_ms=1)
    slow = next(row for row in base.fetches if row.task == at)
    late = more_ms * MS

    def moved(t: int) -> int:
        return t + late if t >= slow.end_ns else t

    fetches = tuple(
        row._replace(start_ns=moved(row.start_ns), end_ns=moved(row.end_ns),
                     cpu_ns=row.cpu_ns + (late if row is slow else 0))
        for row in base.fetches
    )  # fmt: skip
    batches = tuple(
        row._replace(
            wait_start_ns=moved(row.wait_start_ns), wait_end_ns=moved(row.wait_end_ns),
            step_end_ns=moved(row.step_end_ns),
        )
        for row in base.batches
    )  # fmt: skip
    return builders.without(
        base, fetches=fetches, batches=batches, end_ns=base.end_ns + late, threads=()
    )


def periodic(every: int, count: int = 600, slow_ms: float = 300.0, seed: int = 0) -> Profile:
    steps = noisy(count, seed=seed)
    for i in range(every - 1, count, every):
        steps[i] = slow_ms
    return loop([1.0] * count, steps)
