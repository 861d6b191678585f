"""Telling waits apart without the right to see system calls.

What is left is world-readable: the state character, major faults, and how often the thread was
put on a core. Pure functions of recorded samples.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from jupyter_ioscope.model.readings import STATES

_DISK, _PAGE_FAULT = STATES.index("disk"), STATES.index("page_fault")
_FUTEX, _GIL, _RUNNING = STATES.index("futex"), STATES.index("gil"), STATES.index("running")
# A thread waiting for the interpreter lock wakes up once a switch interval (5 ms by default, see
# sys.setswitchinterval) to ask again: about 200 times a second. Other locks wake it only once.
_WAKE_UPS_PER_S = 60.0
_WINDOW = 4  # samples on either side
_SAME_INSTANT_NS = 4_000_000


@dataclass
class Samples:
    """Samples of one thread: times, states, and cumulative major faults and time slices."""

    pid: int
    time_ns: Sequence[int]
    states: list[int]
    faults: Sequence[int]
    slices: Sequence[int]


def refine(all_samples: Sequence[Samples]) -> None:
    """Correct the states in place: page faults among disk waits, the GIL among futexes."""
    for samples in all_samples:
        _page_faults(samples)
    for samples in all_samples:
        others = sorted(
            when
            for other in all_samples
            if other.pid == samples.pid and other is not samples
            for when, state in zip(other.time_ns, other.states, strict=True)
            if state == _RUNNING
        )
        _gil(samples, others)


def _page_faults(samples: Samples) -> None:
    """A major fault is counted when it ends: by the next sample the number has grown."""
    faults = samples.faults
    for position in range(len(samples.states) - 1):
        grown = faults[position + 1] > faults[position]
        if samples.states[position] == _DISK and grown:
            samples.states[position] = _PAGE_FAULT


def _gil(samples: Samples, others_running_ns: Sequence[int]) -> None:
    times, slices = samples.time_ns, samples.slices
    for position, state in enumerate(samples.states):
        if state != _FUTEX:
            continue
        low, high = max(0, position - _WINDOW), min(len(times) - 1, position + _WINDOW)
        span_ns = times[high] - times[low]
        if span_ns <= 0 or (slices[high] - slices[low]) / span_ns * 1e9 < _WAKE_UPS_PER_S:
            continue
        nearest = bisect_left(others_running_ns, times[position] - _SAME_INSTANT_NS)
        if (
            nearest < len(others_running_ns)
            and others_running_ns[nearest] <= times[position] + _SAME_INSTANT_NS
        ):
            samples.states[position] = _GIL
