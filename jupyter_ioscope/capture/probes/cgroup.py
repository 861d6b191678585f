"""How long the watched process's cgroup was held back by its CPU quota, for cgroup v1 and v2."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from jupyter_ioscope.capture import procfs
from jupyter_ioscope.capture.probes._files import FileReader
from jupyter_ioscope.capture.probes._probe import Probe, ProbeError, Target
from jupyter_ioscope.capture.probes._series import SERIES


class CgroupReader(FileReader):
    def __init__(self, target: Target) -> None:
        names = ("cgroup_throttled_ns", "cgroup_throttled_periods")
        super().__init__([SERIES[name] for name in names])
        self._stat = self.keep(find_cpu_stat(target.proc, target.pid), 4096)

    def read(self) -> Sequence[float | None]:
        return throttled(self._stat.read())


def throttled(raw: bytes) -> tuple[float | None, float | None]:
    """(nanoseconds, periods) from the text of `cpu.stat`."""
    fields = dict(line.split(b" ", 1) for line in raw.splitlines() if b" " in line)
    if b"throttled_usec" in fields:  # v2
        held_ns: float | None = int(fields[b"throttled_usec"]) * 1000
    else:
        held_ns = int(fields[b"throttled_time"]) if b"throttled_time" in fields else None
    periods = int(fields[b"nr_throttled"]) if b"nr_throttled" in fields else None
    return held_ns, periods


def find_cpu_stat(proc: str, pid: int) -> str:
    """The `cpu.stat` that counts for a process: of the nearest cgroup above it with a quota, else
    of the nearest that counts throttling at all.

    Raises:
        ProbeError: there is none.
    """
    without_quota = ""
    for folder in _folders(proc, pid):
        path = f"{folder}/cpu.stat"
        try:
            counted = b"nr_throttled" in procfs.read(path, 4096)
        except OSError:
            continue
        if counted and _has_quota(folder):
            return path
        if counted and not without_quota:
            without_quota = path
    if not without_quota:
        raise ProbeError("no cgroup of this process counts CPU throttling")
    return without_quota


def _has_quota(folder: str) -> bool:
    for name, unlimited in (("cpu.max", b"max"), ("cpu.cfs_quota_us", b"-1")):
        try:
            return not procfs.read(f"{folder}/{name}", 64).startswith(unlimited)
        except OSError:
            continue
    return False


def _folders(proc: str, pid: int) -> Iterator[str]:
    """The process's cgroup folders for the CPU controller, from its own upwards."""
    mounts = list(_mounts(proc))
    for line in procfs.read_all(f"{proc}/{pid}/cgroup").decode("utf-8", "replace").splitlines():
        _, controllers, path = line.split(":", 2)
        wanted = "cpu" if "cpu" in controllers.split(",") else "cgroup2" if not controllers else ""
        for kind, root, point in mounts:
            if not wanted or kind != wanted:
                continue
            # In a container the mount may show only the part below `root`, and the path may
            # still be the host's: then the mount point itself is the process's cgroup.
            below = path[len(root) :] if root != "/" and path.startswith(root) else path
            inner = os.path.normpath(f"{point}/{below}")
            while inner.startswith(point):
                yield inner
                if inner == point:
                    break
                inner = os.path.dirname(inner)


def _mounts(proc: str) -> Iterator[tuple[str, str, str]]:
    """("cpu" or "cgroup2", root within the hierarchy, mount point)."""
    for line in procfs.read_all(f"{proc}/self/mountinfo").decode("utf-8", "replace").splitlines():
        left, _, right = line.partition(" - ")
        fields, kinds = left.split(), right.split()
        if not kinds or len(fields) < 5:
            continue
        if kinds[0] == "cgroup2":
            yield "cgroup2", fields[3], fields[4]
        elif kinds[0] == "cgroup" and "cpu" in kinds[-1].split(","):
            yield "cpu", fields[3], fields[4]


PROBE = Probe("cgroup", "CPU throttling of the cgroup", CgroupReader)
