"""CPU time per sample of a loop, profiled over unprofiled, workers included.

The arms of a round run one after the other in random order on the same loader, so that whatever
else the machine does falls on all of them. What the helpers use is not in here: they are measured
by `helpers.py`.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from torch.utils.data import DataLoader

import jupyter_ioscope as ioscope
from tests.bench.measure import cpu_s, print_result, ratio_interval
from tests.bench.workloads import WORKLOADS, samples_in

ROUNDS, QUICK_ROUNDS = 20, 4

ARMS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "unprofiled": contextlib.nullcontext,
    "no stacks": lambda: ioscope.profile(stacks=False),
    "stacks": ioscope.profile,
}


def measure(quick: bool) -> dict[str, Any]:
    rounds = QUICK_ROUNDS if quick else ROUNDS
    return {name: compare_arms(make(), rounds) for name, make in WORKLOADS.items()}


def compare_arms(loader: DataLoader[Any], rounds: int) -> dict[str, Any]:
    """Ratio of CPU per sample of each profiled arm over the unprofiled one, paired by round."""
    for enter in ARMS.values():  # the first run pays for imports, helpers, and the page cache
        cpu_per_sample_s(loader, enter)
    rng = random.Random(0)
    measured: list[dict[str, float]] = []
    for _ in range(rounds):
        order = rng.sample(list(ARMS), k=len(ARMS))
        measured.append({arm: cpu_per_sample_s(loader, ARMS[arm]) for arm in order})
    return {
        arm: ratio_interval([(run["unprofiled"], run[arm]) for run in measured])._asdict()
        for arm in ARMS
        if arm != "unprofiled"
    } | {"rounds": rounds, "unprofiled_ms": 1e3 * min(run["unprofiled"] for run in measured)}


def cpu_per_sample_s(
    loader: DataLoader[Any], enter: Callable[[], AbstractContextManager[Any]]
) -> float:
    """One epoch. Its workers have been waited for before the clock is read."""
    with enter():
        before = cpu_s()
        for _ in loader:
            pass
        return (cpu_s() - before) / samples_in(loader)


if __name__ == "__main__":
    print_result(measure, __doc__)
