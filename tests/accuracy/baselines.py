"""The rules of four other tools, computed from the same profiles.

Each is written from the tool's own documentation or source, named beside it. They see what they
would see on the same run: the time in `next()`, the CPU's and the GPU's utilisation, I/O wait.
Where a number was not recorded the tool says nothing (`loader` is None).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from jupyter_ioscope.model.profile import Profile
from tests.accuracy.coarse import CONSUMER, CPU, IO


class Said(NamedTuple):
    """A tool's answer: whether it is the loader (None: it cannot say), and which resource."""

    loader: bool | None
    resource: str = ""
    words: str = ""


def baselines(profile: Profile) -> Iterator[tuple[str, Said]]:
    """(tool, what it says) for every tool."""
    share = input_share(profile)
    for name, rule in (
        ("TraceML", traceml),
        ("TensorBoard plugin", tensorboard_plugin),
        ("XProf", xprof),
    ):
        yield name, rule(share) if share is not None else Said(None)
    yield "SageMaker debugger", sagemaker(profile)


def input_share(profile: Profile) -> float | None:
    """Part of the steps' time that passed in `next()` of the loader; None without a step."""
    total = sum(row.wait_ns + row.step_ns for row in profile.batches)
    return sum(row.wait_ns for row in profile.batches) / total if total else None


def traceml(share: float) -> Said:
    """TraceML (github.com/traceopt-ai/traceml, src/traceml/diagnostics/step_time/policy.py):
    input-bound from 10 % of the step on (overhead_share_warn), severely from 20 % on
    (overhead_share_crit); earlier versions had 25 and 35 %. The advice names no resource."""
    if share >= 0.20:
        return Said(True, "", "input-bound, severe: more workers, prefetch, or faster storage")
    if share >= 0.10:
        return Said(True, "", "input-bound: more workers, prefetch, or faster storage")
    return Said(False, CONSUMER, "not input-bound")


def tensorboard_plugin(share: float) -> Said:
    """PyTorch's TensorBoard plugin (github.com/pytorch/kineto, until April 2026,
    tb_plugin/torch_tb_profiler/profiler/data.py, `analyze`): more than 5 % of the step in
    DataLoader, and the recommendation is to set num_workers."""
    if share > 0.05:
        return Said(True, CPU, "high time cost on input data loading: set num_workers")
    return Said(False, CONSUMER, "no recommendation")


def xprof(share: float) -> Said:
    """XProf, once TensorFlow Profiler (op_stats_to_input_pipeline_analysis.cc): below 5 % of the
    step not input-bound (kModeratelyInfeedBoundThresholdInPercent), below 20 % moderately
    (kHighlyInfeedBoundThresholdInPercent), else highly."""
    if share >= 0.20:
        return Said(True, "", "highly input-bound")
    if share >= 0.05:
        return Said(True, "", "moderately input-bound")
    return Said(False, CONSUMER, "not input-bound")


# SageMaker Debugger's rules CPUBottleneck (threshold=50, gpu_threshold=10, cpu_threshold=90) and
# IOBottleneck (threshold=50, gpu_threshold=10, io_threshold=50), "List of Debugger built-in
# profiler rules" in its documentation: raised where the condition holds in `threshold` per cent of
# the readings.
_GPU_BELOW, _CPU_ABOVE, _IO_ABOVE, _OF_READINGS = 0.10, 0.90, 0.50, 0.50


def sagemaker(profile: Profile) -> Said:
    """A machine without a GPU counts as one whose GPU is idle: the rules' first condition holds."""
    gpu = [s.mean() for name, s in profile.series.items() if name.endswith("_busy_fraction")]
    if gpu and max(gpu) >= _GPU_BELOW:
        return Said(False, CONSUMER, "the GPU is busy")
    busy = readings(profile, "machine_busy_ns")
    if not busy:
        return Said(None)
    waiting = readings(profile, "machine_iowait_ns")
    if _mostly(waiting, _IO_ABOVE):
        return Said(True, IO, "IOBottleneck")
    if _mostly(busy, _CPU_ABOVE):
        return Said(True, CPU, "CPUBottleneck")
    return Said(False, "", "no rule raised")


def readings(profile: Profile, name: str) -> list[float]:
    """Fractions of all cores between readings of a cumulative series of CPU time."""
    series = profile.series.get(name)
    if series is None:
        return []
    points = list(zip(series.time_ns, series.values, strict=True))
    cores = max(1, profile.machine.cpus)
    return [
        (b - a) / (later - at) / cores for (at, a), (later, b) in pairwise(points) if later > at
    ]


def _mostly(values: list[float], above: float) -> bool:
    return bool(values) and sum(v > above for v in values) >= _OF_READINGS * len(values)
