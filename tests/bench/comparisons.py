"""How often the same arm twice is called different, and how long a true factor of 1.5 takes.

Real comparisons through the public call, each in its own processes. `PythonLoop` has a dial: two
thirds of the rounds are 1.5 times the throughput of a loader that does nothing else.
"""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader

import jupyter_ioscope as ioscope
from jupyter_ioscope.model.comparison import Comparison
from tests.bench.measure import at_most_interval, print_result
from tests.bench.workloads import WORKERS, PythonLoop

SAME_ARMS, QUICK_SAME_ARMS = 20, 2
SAME_BUDGET_S = 12
TRUE_FACTOR = 1.5
FACTORS, QUICK_FACTORS = 3, 1
FACTOR_BUDGET_S = 60
ROUNDS = 30_000  # about 3 ms a sample, so that the loader's own work does not dilute the factor


def measure(quick: bool) -> dict[str, Any]:
    same = [same_arm_twice() for _ in range(QUICK_SAME_ARMS if quick else SAME_ARMS)]
    factor = [true_factor() for _ in range(QUICK_FACTORS if quick else FACTORS)]
    alarms = sum(result.verdict in ("faster", "slower") for result in same)
    return {
        "same_arm_comparisons": len(same),
        "false_alarms": at_most_interval(alarms, len(same))._asdict(),
        "same_arm_verdicts": sorted(result.verdict for result in same),
        "true_factor": TRUE_FACTOR,
        "factor_verdicts": [result.verdict for result in factor],
        "factor_ratios": [[r.ratio, r.ratio_low, r.ratio_high] for r in factor],
        "factor_seconds": [result.seconds for result in factor],
        "isolation": sorted({result.isolation for result in [*same, *factor]}),
    }


def same_arm_twice() -> Comparison:
    return ioscope.compare(loader(ROUNDS), loader(ROUNDS), budget_s=SAME_BUDGET_S)


def true_factor() -> Comparison:
    faster = loader(round(ROUNDS / TRUE_FACTOR))
    return ioscope.compare(loader(ROUNDS), faster, budget_s=FACTOR_BUDGET_S)


def loader(rounds: int) -> DataLoader[Any]:
    return DataLoader(PythonLoop(100_000, rounds), batch_size=16, num_workers=WORKERS)


if __name__ == "__main__":
    print_result(measure, __doc__)
