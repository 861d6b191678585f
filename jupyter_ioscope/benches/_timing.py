"""One timed run of an arm, in a process that exists for it alone."""

from __future__ import annotations

import contextlib
import math
import os
import time
from typing import Any

from jupyter_ioscope.benches._bench import Arm, Pass
from jupyter_ioscope.trials.statistics import median

_MOST_TRIES = 20  # passes that did not count (an eviction that did not take) in one run


def looked(arm: Arm) -> dict[str, Any]:
    """What the arm's outcome has of its own: {"differences": [...]}."""
    assert arm.look is not None
    return {"differences": [str(text) for text in arm.look()]}


def timed(arm: Arm, stretch_s: float, own_process: bool, warm: bool = True) -> dict[str, Any]:
    """Passes of one arm until `stretch_s` seconds were timed, at least one; `warm` lets one go by
    first, where the arm wants that.

    Returns seconds and CPU seconds an item (of the middle pass), the memory that the process grew
    by (0 where it cannot be told), and the medians of the pass's own numbers.
    """
    begin = _status() if own_process and _forget_peak() else {}
    once = arm.open()
    if arm.warm and warm:
        once()
    run = _Run(arm, once)
    while not run.walls_s or run.spent_s < stretch_s:
        run.one()
    end = _status() if begin else {}
    grown = max(0, end.get("VmHWM", 0) - begin.get("VmRSS", 0))
    mapped = max(0, end.get("RssFile", 0) - begin.get("RssFile", 0))
    return {
        # The middle pass: one that another program held up says nothing of the arm.
        "seconds": median(run.walls_s),
        "cpu": median(run.cpus_s),
        "memory": grown,
        "files": min(mapped, grown),
        "own": {name: median(values) for name, values in run.own.items()},
    }


class _Run:
    """The passes that count: seconds and CPU seconds of an item in each."""

    def __init__(self, arm: Arm, once: Pass) -> None:
        self.arm, self.once = arm, once
        self.tries = 0
        self.spent_s = 0.0
        self.walls_s: list[float] = []
        self.cpus_s: list[float] = []
        self.own: dict[str, list[float]] = {}

    def one(self) -> None:
        reason = self.arm.before() if self.arm.before is not None else ""
        if reason:
            self.tries += 1
            if self.tries >= _MOST_TRIES:
                raise RuntimeError(reason)
            return
        cpu, start = time.process_time_ns(), time.perf_counter_ns()
        told = self.once() or {}
        wall_s = (time.perf_counter_ns() - start) / 1e9
        cpu_s = (time.process_time_ns() - cpu) / 1e9
        self.spent_s += wall_s
        items = told.get("items", self.arm.items)
        self.walls_s.append(told.get("seconds", wall_s) / items)
        self.cpus_s.append(cpu_s / items)
        for name, value in told.items():
            if math.isfinite(value):
                self.own.setdefault(name, []).append(value)


def _forget_peak() -> bool:
    """Let the kernel count this process's peak from here (proc_pid_clear_refs(5))."""
    with contextlib.suppress(OSError):
        fd = os.open("/proc/self/clear_refs", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, b"5")
            return True
        finally:
            os.close(fd)
    return False


def _status() -> dict[str, int]:
    """The sizes of /proc/self/status in bytes."""
    found: dict[str, int] = {}
    with contextlib.suppress(OSError, ValueError), open("/proc/self/status") as file:
        for line in file:
            name, _, rest = line.partition(":")
            if name.startswith(("Vm", "Rss")):
                found[name] = int(rest.split()[0]) * 1024
    return found
