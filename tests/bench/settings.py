"""How far predicted throughputs of other settings lie from measured ones, and what a search that
trusts them loses against the best of the whole grid.

One profile of each loader (2 workers, 2 batches ahead) predicts twelve settings; each is then
timed, with the recorded setting before and after it, so that what other programs took meanwhile
falls on both. A prediction counts as met when the measured ratio to the recorded setting lies in
its interval. The search then runs on the measured values as if it timed them.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from photos import photo_folder
from torch.utils.data import DataLoader, Dataset

import jupyter_ioscope as ioscope
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.what_if import WhatIf
from jupyter_ioscope.model.prediction import Setting
from jupyter_ioscope.trials.search import Search
from tests.bench.measure import print_result
from tests.bench.workloads import Photographs, PythonLoop

RECORDED = Setting(2, 2)
GRID = [
    Setting(0, 2), Setting(1, 1), Setting(1, 2), Setting(2, 1), Setting(2, 4), Setting(2, 8),
    Setting(3, 1), Setting(3, 2), Setting(4, 1), Setting(4, 2), Setting(6, 2), Setting(8, 2),
]  # fmt: skip
PROFILE_S, TIMED_S = 4.0, 1.2


class Mixed(Dataset[Any]):
    """Each sample waits and computes; every `every`-th one waits `longer` times as long."""

    def __init__(self, wait_s: float, rounds: int, every: int = 1, longer: float = 1.0) -> None:
        self.wait_s, self.rounds, self.every, self.longer = wait_s, rounds, every, longer

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> Any:
        if self.wait_s:
            time.sleep(self.wait_s * (self.longer if index % self.every == 0 else 1.0))
        total = index
        for step in range(self.rounds):
            total = (total * 31 + step) & 0xFFFF
        return torch.tensor([total, index])


class Many(Dataset[Any]):
    """Samples of several small tensors: bringing them across is the work."""

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> Any:
        return {str(key): torch.tensor([index, key]) for key in range(12)}


def pictures() -> Dataset[Any]:
    found = Photographs(photo_folder(count=600))
    found.files = found.files * 20
    return found


# Name -> (dataset, samples in a batch, seconds of the step).
LOADS: dict[str, tuple[Callable[[], Dataset[Any]], int, float]] = {
    "waits": (lambda: Mixed(0.004, 200), 8, 0.0),
    "waits, with a step": (lambda: Mixed(0.004, 200), 8, 0.012),
    "waits and computes": (lambda: Mixed(0.003, 4_000), 8, 0.004),
    "uneven waits": (lambda: Mixed(0.002, 200, every=40, longer=40), 8, 0.006),
    "computes": (lambda: PythonLoop(100_000, 12_000), 8, 0.0),
    "computes, with a step": (lambda: PythonLoop(100_000, 12_000), 8, 0.010),
    "photographs": (pictures, 8, 0.0),
    "many tensors": (Many, 32, 0.0),
}


def measure(quick: bool) -> dict[str, Any]:
    names = list(LOADS)[:2] if quick else list(LOADS)
    grid = GRID[::3] if quick else GRID
    return {"loads": {name: one_load(*LOADS[name], grid) for name in names}}


def one_load(
    make: Callable[[], Dataset[Any]], batch_size: int, step_s: float, grid: list[Setting]
) -> dict[str, Any]:
    dataset = make()
    with ioscope.profile(stacks=False) as recording:
        rate(dataset, batch_size, step_s, RECORDED, PROFILE_S)
    what_if = WhatIf(Facts(recording.profile))
    rows = []
    before = rate(dataset, batch_size, step_s, RECORDED, TIMED_S)
    noise = []
    for setting in grid:
        found = rate(dataset, batch_size, step_s, setting, TIMED_S)
        after = rate(dataset, batch_size, step_s, RECORDED, TIMED_S)
        noise.append(math.log(after / before))
        told = what_if.prediction(setting)
        rows.append(
            {
                "workers": setting.workers,
                "prefetch": setting.prefetch,
                "predicted": told.ratio,
                "low": told.low,
                "high": told.high,
                "measured": found / math.sqrt(before * after),
            }
        )
        before = after
    errors = [abs(math.log(row["predicted"] / row["measured"])) for row in rows]
    return {
        "rows": rows,
        "median_error": statistics.median(errors),
        # Two runs of one setting differ by so much: no prediction can be nearer.
        "noise": statistics.median(abs(value) for value in noise),
        "covered": sum(row["low"] <= row["measured"] <= row["high"] for row in rows),
        **searched(rows),
    }


def searched(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What the search loses on the measured grid, and how many runs it takes."""
    measured = {Setting(row["workers"], row["prefetch"]): row["measured"] for row in rows}
    predicted = {Setting(row["workers"], row["prefetch"]): row["predicted"] for row in rows}
    measured[RECORDED], predicted[RECORDED] = 1.0, 1.0
    search = Search(predicted, RECORDED)
    best = search.run(lambda setting: measured[setting])
    return {
        "regret": max(measured.values()) / measured[best] - 1.0,
        "runs": len(search.measured),
        "best": [best.workers, best.prefetch],
    }


def rate(
    dataset: Dataset[Any], batch_size: int, step_s: float, setting: Setting, seconds: float
) -> float:
    """Steady samples per second: the first batches of the start left out."""
    some = setting.workers > 0
    loader: DataLoader[Any] = DataLoader(
        dataset,
        batch_size=batch_size,
        num_workers=setting.workers,
        prefetch_factor=setting.prefetch if some else None,
    )
    skip = setting.workers * (setting.prefetch + 1) + 1
    least = max(4, 2 * setting.workers)
    began_s, timed = 0.0, 0
    for number, _ in enumerate(loader):
        if number == skip:
            began_s = time.monotonic()
        timed = number - skip
        if (
            timed >= least
            and time.monotonic() - began_s >= seconds
            and not (some and timed % setting.workers)
        ):
            break
        if step_s:
            time.sleep(step_s)
    return timed * batch_size / (time.monotonic() - began_s)


if __name__ == "__main__":
    print_result(measure, __doc__)
