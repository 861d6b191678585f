"""Bytes the tree read and wrote, and how busy the machine's disks were."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence

from jupyter_ioscope.capture import procfs
from jupyter_ioscope.capture.probes._files import FileReader, KeptFile, TreeTotals
from jupyter_ioscope.capture.probes._probe import Probe, Target, reason_of
from jupyter_ioscope.capture.probes._series import SERIES
from jupyter_ioscope.model.profile import Gap

_TREE = ("tree_read_bytes", "tree_write_bytes", "tree_read_chars")
_MACHINE = ("machine_disk_read_bytes", "machine_disk_write_bytes", "machine_disk_busy_ns")
_SECTOR_BYTES = 512  # unit of /proc/diskstats whatever the device's own, see proc(5)


class DiskReader(FileReader):
    def __init__(self, target: Target) -> None:
        super().__init__([])
        self._target = target
        self._totals: TreeTotals | None = None
        self._diskstats: KeptFile | None = None
        names: list[str] = []
        try:
            self._counters(target.pid)
            self._totals = TreeTotals(3)
            names += _TREE
        except (OSError, ValueError, KeyError) as error:
            self.gaps.append(Gap("bytes the tree read and wrote", reason_of(error)))
        self._disks = _whole_disks(target.sys)
        try:
            self._diskstats = self.keep(f"{target.proc}/diskstats")
            names += _MACHINE
        except OSError as error:
            self.gaps.append(Gap("disk activity of the machine", reason_of(error)))
        self.series = [SERIES[name] for name in names]

    def read(self) -> Sequence[float | None]:
        values: list[float | None] = []
        if self._totals is not None:
            values += self._totals.update(self._all_counters())
        if self._diskstats is not None:
            values += self._machine(self._diskstats.read())
        return values

    def _all_counters(self) -> Iterator[tuple[float, float, float]]:
        for pid in self._target.pids():
            with contextlib.suppress(OSError, ValueError, KeyError):
                yield self._counters(pid)

    def _counters(self, pid: int) -> tuple[float, float, float]:
        raw = procfs.read(f"{self._target.proc}/{pid}/io", 512)
        fields = dict(line.split(b": ", 1) for line in raw.splitlines())
        return int(fields[b"read_bytes"]), int(fields[b"write_bytes"]), int(fields[b"rchar"])

    def _machine(self, raw: bytes) -> list[float]:
        read = write = 0
        busy_ms = 0
        for line in raw.splitlines():
            fields = line.split()
            if len(fields) < 13 or fields[2].decode() not in self._disks:
                continue
            read += int(fields[5])
            write += int(fields[9])
            busy_ms = max(busy_ms, int(fields[12]))
        return [read * _SECTOR_BYTES, write * _SECTOR_BYTES, busy_ms * 1e6]


def _whole_disks(sys: str) -> frozenset[str]:
    """Devices that are neither partitions nor made of others: nothing is counted twice."""
    try:
        names = os.listdir(f"{sys}/block")
    except OSError:
        return frozenset()
    return frozenset(
        name
        for name in names
        if not name.startswith(("loop", "ram", "zram", "dm-", "md")) and not name.startswith("sr")
    )


PROBE = Probe("disk", "bytes read and written", DiskReader)
