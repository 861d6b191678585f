"""CPU time of the tree and of the machine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence

from jupyter_ioscope.capture import procfs
from jupyter_ioscope.capture.probes._files import FileReader, TreeTotals
from jupyter_ioscope.capture.probes._probe import Probe, Target
from jupyter_ioscope.capture.probes._series import SERIES

_NAMES = ("tree_cpu_ns", "machine_busy_ns", "machine_iowait_ns", "machine_steal_ns")
# Columns of the first line of /proc/stat, see proc(5).
_BUSY = (0, 1, 2, 5, 6)  # user, nice, system, irq, softirq
_IOWAIT, _STEAL = 4, 7


class CpuReader(FileReader):
    def __init__(self, target: Target) -> None:
        super().__init__([SERIES[name] for name in _NAMES])
        self._target = target
        self._ns_per_tick = 1_000_000_000 / os.sysconf("SC_CLK_TCK")
        self._stat = self.keep(f"{target.proc}/stat", 4096)
        self._tree = TreeTotals(1)

    def read(self) -> Sequence[float | None]:
        line = self._stat.read().split(b"\n", 1)[0].split()[1:]
        ticks = [int(part) for part in line]
        busy = sum(ticks[column] for column in _BUSY)
        tree = self._tree.update(self._tree_ticks())[0]
        return [value * self._ns_per_tick for value in (tree, busy, ticks[_IOWAIT], ticks[_STEAL])]

    def _tree_ticks(self) -> Iterator[tuple[float]]:
        for pid in self._target.pids():
            with contextlib.suppress(OSError, ValueError):
                raw = procfs.read(f"{self._target.proc}/{pid}/stat", 1024)
                # utime, stime, and those of reaped children: fields 14 to 17 of proc(5).
                fields = raw[raw.rindex(b")") + 2 :].split(b" ", 15)[11:15]
                yield (float(sum(int(part) for part in fields)),)


PROBE = Probe("cpu", "CPU time of the tree and the machine", CpuReader)
