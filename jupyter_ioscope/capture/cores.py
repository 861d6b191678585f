"""How many cores this process may use."""

from __future__ import annotations

import math
import os
from pathlib import Path


def usable_cores() -> int:
    """Cores this process may keep busy: its affinity, cut to the cgroup's CPU quota, at least 1."""
    quota = quota_cores()
    allowed = affinity_cores()
    return max(1, allowed if quota is None else min(allowed, math.floor(quota + 0.5)))


def affinity_cores() -> int:
    """Cores of this process's affinity mask (all cores where the system has none)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def quota_cores(root: str = "/sys/fs/cgroup", proc: str = "/proc/self/cgroup") -> float | None:
    """The smallest CPU quota from this process's cgroup up to the root, in cores; None without one.

    Reads cgroup v2 `cpu.max` and v1 `cpu.cfs_quota_us`.
    """
    found = []
    for line in _read(proc).splitlines():
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if number == "0":
            found += [_v2(folder) for folder in _upwards(Path(root), path)]
        elif "cpu" in controllers.split(","):
            for base in (Path(root, controllers), Path(root, "cpu")):
                found += [_v1(folder) for folder in _upwards(base, path)]
    known = [value for value in found if value is not None]
    return min(known) if known else None


def _upwards(root: Path, path: str) -> list[Path]:
    folder = root / path.strip("/")
    # Inside a container the listed path may not exist under the mount: the mount is then the group.
    return [folder, *folder.parents[: len(folder.parts) - len(root.parts)], root]


def _v2(folder: Path) -> float | None:
    quota, _, period = _read(folder / "cpu.max").strip().partition(" ")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def _v1(folder: Path) -> float | None:
    quota, period = (_read(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period"))
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def _read(path: str | Path) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
