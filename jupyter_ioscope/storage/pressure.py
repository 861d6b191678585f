"""How much the machine waits for I/O: pressure stall information and iowait.

Sources: the kernel's Documentation/accounting/psi.rst and proc_stat(5).
"""

from __future__ import annotations

import time
from typing import NamedTuple


class Reading(NamedTuple):
    """Counters at one instant; -1 where the system has none. Ticks are those of all cores."""

    at_s: float
    some_us: int
    iowait_ticks: int
    all_ticks: int


def read(proc: str = "/proc") -> Reading:
    """Read the counters now."""
    some = -1
    for line in _read(f"{proc}/pressure/io").splitlines():
        if line.startswith("some") and "total=" in line:
            some = int(line.rpartition("total=")[2] or -1)
    fields = _read(f"{proc}/stat").partition("\n")[0].split()
    ticks = [int(word) for word in fields[1:9]] if fields[:1] == ["cpu"] else []
    if len(ticks) < 5:
        return Reading(time.monotonic(), some, -1, -1)
    return Reading(time.monotonic(), some, ticks[4], sum(ticks))


def between(before: Reading, after: Reading) -> tuple[float, float]:
    """(share of time in which some program waited for I/O, share of core time in iowait)."""
    wall_us = (after.at_s - before.at_s) * 1e6
    some = -1.0
    if before.some_us >= 0 and after.some_us >= 0 and wall_us > 0:
        some = min(1.0, max(0, after.some_us - before.some_us) / wall_us)
    ticks = after.all_ticks - before.all_ticks
    if before.iowait_ticks < 0 or ticks <= 0:
        return some, -1.0
    # The kernel's iowait of a core can also go down (proc_stat(5)).
    return some, min(1.0, max(0, after.iowait_ticks - before.iowait_ticks) / ticks)


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""
