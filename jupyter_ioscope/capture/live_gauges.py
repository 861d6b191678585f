"""Readings of this process and its workers for somebody who looks on, at a pace that stays cheap.

Nothing runs between two calls of `read`: no helper process, no thread of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from jupyter_ioscope import registry
from jupyter_ioscope.capture import probes, procfs
from jupyter_ioscope.capture.gauges import Gauges, Recorded
from jupyter_ioscope.capture.probes._probe import Probe
from jupyter_ioscope.capture.sampler import Sampler
from jupyter_ioscope.model.profile import Gap

# What the panel shows; the others cost time for nothing.
_WANTED = frozenset({"cpu", "disk", "gpu", "memory", "pressure"})
_PER_SECOND = {"ns": 1e-9, "us": 1e-6}  # growth of a time per second: cores, or a share of time


@dataclass(frozen=True)
class LiveReading:
    """Newest value of each series of `probes._series`, by name.

    Of cumulative series it is the growth per second since the reading before, so they are absent
    from the first one: cores for CPU times, a share of time for other times, bytes/s for bytes.
    """

    values: dict[str, float]
    gaps: tuple[Gap, ...]
    cores: int


class _Target:
    """The process tree as probes want it, looked up once a reading."""

    pss_share = 0.0005  # of the time, for exact memory, which takes 10 ms where much is loaded

    def __init__(self, proc: str, sys: str) -> None:
        self.proc, self.sys, self.pid = proc, sys, os.getpid()
        self._pids: list[int] = [self.pid]

    def pids(self) -> Iterable[int]:
        return self._pids

    def look(self) -> None:
        """Find the processes below this one. The profiler's own helper is not one of them."""
        ours = Sampler.helper_pid()
        found = [self.pid]
        for pid in found:
            for tid in procfs.threads(self.proc, pid):
                found += [one for one in procfs.children(self.proc, pid, tid) if one != ours]
        self._pids = found


class LiveGauges:
    """Opened probes of this process. Not for two threads at once.

    Args:
        proc, sys: roots of the proc and sys file systems, for tests.
    """

    def __init__(self, proc: str = "/proc", sys: str = "/sys") -> None:
        self._target = _Target(proc, sys)
        found: list[Probe] = registry.plugins(probes, "PROBE")
        self._gauges = Gauges([one for one in found if one.name in _WANTED], self._target)
        self._before: dict[str, tuple[int, float]] = {}
        self._cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1

    def read(self) -> LiveReading:
        """Read everything once; takes about a millisecond of CPU for a kernel and two workers."""
        self._target.look()
        self._gauges.read()
        values: dict[str, float] = {}
        for series in self._gauges.series():
            if len(series.values):
                self._add(values, series)
        return LiveReading(values, tuple(self._gauges.gaps()), self._cores)

    def _add(self, values: dict[str, float], series: Recorded) -> None:
        info = series.info
        now_ns, value = series.time_ns[-1], series.values[-1]
        if info.kind != "cumulative":
            values[info.name] = value
        else:
            before_ns, before = self._before.get(info.name, (now_ns, value))
            if now_ns > before_ns:
                growth = max(0.0, value - before) * _PER_SECOND.get(info.unit, 1.0)
                values[info.name] = growth / (now_ns - before_ns) * 1e9
            self._before[info.name] = (now_ns, value)
        # Only the newest is ever asked for.
        del series.time_ns[:-1], series.values[:-1]

    def close(self) -> None:
        """Give back every descriptor; one that is still being opened is waited for a second."""
        self._gauges.finish_opening()
        self._gauges.close()
