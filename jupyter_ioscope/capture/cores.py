"""How many cores this process may use."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path

from jupyter_ioscope.process_stat import stat_fields


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


def cores_per_rank() -> int:
    """Usable cores of this process's part where several ranks of one job train on this machine,
    at least 1. All of them where there is one rank."""
    return max(1, usable_cores() // sharing_ranks())


def sharing_ranks() -> int:
    """Ranks of one job on this machine that may use the same cores as this process, this one
    counted: torchrun, Accelerate, MPI and Slurm tell how many there are. Ranks that were bound to
    cores of their own take none of these."""
    ranks = local_ranks(os.environ)
    if ranks < 2 or not hasattr(os, "sched_getaffinity"):
        return ranks
    own = os.sched_getaffinity(0)
    masks = [mask for mask in map(_mask, _siblings()) if mask]
    if len(masks) < ranks:
        return ranks  # not all are seen: take them for sharing
    apart = sum(not (mask & own) for mask in masks)
    return max(1, ranks - apart)


def local_ranks(environment: Mapping[str, str]) -> int:
    """How many ranks of one job run on this machine, as its launcher says; 1 without one."""
    for name in _RANKS:
        text = environment.get(name, "").partition("(")[0]  # Slurm: 4(x2), on two machines
        if text.isdigit() and int(text) > 0:
            return int(text)
    return 1


# Set by torchrun and Accelerate, Open MPI, MPICH and Intel MPI, MVAPICH, Slurm's srun.
_RANKS = (
    "LOCAL_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "MV2_COMM_WORLD_LOCAL_SIZE",
    "SLURM_STEP_TASKS_PER_NODE",
)


def _siblings() -> list[int]:
    """Processes with this one's parent: a launcher starts all ranks of its machine."""
    parent = os.getppid()
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            fields = stat_fields(name)
            if len(fields) > 1 and fields[1] == str(parent):
                found.append(int(name))
    return found


def _mask(pid: int) -> set[int]:
    try:
        return os.sched_getaffinity(pid)
    except OSError:
        return set()
