"""How often the same arm twice is called different, and how long true factors take to be found.

Real comparisons through the public call, each in its own processes. `PythonLoop` has a dial: two
thirds of the rounds are 1.5 times the throughput of a loader that does nothing else. A factor of
1.1 is looked for in CPU per sample, which other programs hardly move. The pairs of the same arm
twice are then the noise of simulated comparisons (see `peeking.py`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from statistics import median, stdev
from typing import Any

from torch.utils.data import DataLoader

import jupyter_ioscope as ioscope
from jupyter_ioscope.model.comparison import Comparison, Trial
from jupyter_ioscope.trials.statistics import MIN_PAIRS
from tests.bench import peeking
from tests.bench.measure import at_most_interval, print_result
from tests.bench.workloads import WORKERS, PythonLoop

SAME_ARMS, QUICK_SAME_ARMS = 40, 2
SAME_BUDGET_S = 20
SAME_ROUNDS = 4_000
TRUE_FACTOR = 1.5
FACTORS, QUICK_FACTORS = 3, 1
FACTOR_BUDGET_S = 60
CPU_FACTOR = 1.1
CPU_FACTORS, QUICK_CPU_FACTORS = 10, 1
SEQUENCES = 2000
ROUNDS = 30_000  # about 3 ms a sample, so that the loader's own work does not dilute the factor


def measure(quick: bool) -> dict[str, Any]:
    same = [same_arm_twice(n) for n in range(QUICK_SAME_ARMS if quick else SAME_ARMS)]
    factor = [true_factor() for _ in range(QUICK_FACTORS if quick else FACTORS)]
    cpu = [cpu_factor() for _ in range(QUICK_CPU_FACTORS if quick else CPU_FACTORS)]
    return summary(same, factor, cpu)


def summary(
    same: list[Comparison], factor: list[Comparison], cpu: list[Comparison]
) -> dict[str, Any]:
    """A comparison too short for a verdict cannot err, and is not counted."""
    same = [result for result in same if result.pairs >= MIN_PAIRS]
    alarms = sum(result.verdict in ("faster", "slower") for result in same)
    return {
        "same_arm_comparisons": len(same),
        "same_arm_pairs": sum(result.pairs for result in same),
        "false_alarms": at_most_interval(alarms, len(same))._asdict(),
        "same_arm_verdicts": sorted(result.verdict for result in same),
        "true_factor": TRUE_FACTOR,
        "factor_verdicts": [result.verdict for result in factor],
        "factor_ratios": [[r.ratio, r.ratio_low, r.ratio_high] for r in factor],
        "factor_seconds": [result.seconds for result in factor],
        "cpu_factor": CPU_FACTOR,
        "cpu_factor_verdicts": [result.verdict for result in cpu],
        "cpu_ratios": [[r.cpu_ratio, r.cpu_ratio_low, r.cpu_ratio_high] for r in cpu],
        "cpu_seconds": [result.seconds for result in cpu],
        "isolation": sorted({result.isolation for result in [*same, *factor, *cpu]}),
        "external_cores": median([t.external_cpu for r in (*same, *cpu) for t in r.trials]),
        **simulated(same),
    }


def simulated(same: list[Comparison]) -> dict[str, Any]:
    """What watching does, with the noise of these pairs."""
    rng = random.Random(1)
    made: dict[str, Any] = {"sequences": SEQUENCES}
    for name, value in (("throughput", _rate), ("cpu", _cpu)):
        noise = peeking.centred([logs(result, value) for result in same])
        alarms = peeking.false_alarms(noise, SEQUENCES, rng)
        made[name] = {
            "sd": stdev(noise),
            "alarms": at_most_interval(alarms, SEQUENCES)._asdict(),
            "pairs_needed": {
                str(factor): peeking.pairs_needed(peeking.power(noise, factor, SEQUENCES, rng))
                for factor in (CPU_FACTOR, TRUE_FACTOR)
            },
        }
    return made


def logs(result: Comparison, value: Callable[[Trial], float]) -> list[float]:
    """ln(B / A) of each pair."""
    arms = {(trial.pair, trial.arm): value(trial) for trial in result.trials}
    return [math.log(arms[n, "B"] / arms[n, "A"]) for n in range(result.pairs)]


def _rate(trial: Trial) -> float:
    return trial.samples_per_s


def _cpu(trial: Trial) -> float:
    return trial.cpu_ms_per_sample


def same_arm_twice(number: int) -> Comparison:
    """Every fourth one with workers, which take longer to start and to become steady."""
    workers = 0 if number % 4 else WORKERS
    one, two = (loader(SAME_ROUNDS, workers) for _ in range(2))
    return ioscope.compare(one, two, budget_s=SAME_BUDGET_S)


def true_factor() -> Comparison:
    faster = loader(round(ROUNDS / TRUE_FACTOR), WORKERS)
    return ioscope.compare(loader(ROUNDS, WORKERS), faster, budget_s=FACTOR_BUDGET_S)


def cpu_factor() -> Comparison:
    """Without workers: those work ahead, so a short stretch holds CPU time of other batches."""
    faster = loader(round(ROUNDS / CPU_FACTOR), 0)
    return ioscope.compare(loader(ROUNDS, 0), faster, budget_s=FACTOR_BUDGET_S)


def loader(rounds: int, workers: int) -> DataLoader[Any]:
    return DataLoader(PythonLoop(100_000, rounds), batch_size=16, num_workers=workers)


if __name__ == "__main__":
    print_result(measure, __doc__)
