"""What the measuring scripts share: CPU time of a tree, intervals, the machine's name, JSON out."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

CONFIDENCE = 0.95
RESAMPLES = 4000


class Interval(NamedTuple):
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


def cpu_s() -> float:
    """CPU seconds of this process and of the children it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def ratio_interval(pairs: Sequence[tuple[float, float]], seed: int = 0) -> Interval:
    """Median of b/a over pairs (a, b), with a percentile bootstrap interval over the pairs."""
    logs = [math.log(b / a) for a, b in pairs]
    rng = random.Random(seed)
    medians = sorted(statistics.median(rng.choices(logs, k=len(logs))) for _ in range(RESAMPLES))
    tail = round((1 - CONFIDENCE) / 2 * RESAMPLES)
    low, high = medians[tail], medians[-tail - 1]
    return Interval(math.exp(statistics.median(logs)), math.exp(low), math.exp(high))


def at_most_interval(events: int, tries: int) -> Interval:
    """Share of events with Wilson's 95 % score interval (Wilson 1927, z = 1.96)."""
    z, share = 1.96, events / tries
    centre = (share + z * z / (2 * tries)) / (1 + z * z / tries)
    spread = z * math.sqrt(share * (1 - share) / tries + z * z / (4 * tries * tries))
    half = spread / (1 + z * z / tries)
    return Interval(share, max(0.0, centre - half), min(1.0, centre + half))


def machine() -> str:
    """One line that names where the numbers come from."""
    import torch

    return (
        f"{_cpu_model()}, {len(os.sched_getaffinity(0))} usable cores, {platform.system()} "
        f"{platform.release()}, Python {platform.python_version()}, torch {torch.__version__}"
    )


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def print_result(measure: Callable[[bool], dict[str, Any]], about: str | None) -> None:
    """The main function of every measuring script: `--quick`, one line of JSON."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, wider intervals")
    print(json.dumps(measure(parser.parse_args().quick)))
