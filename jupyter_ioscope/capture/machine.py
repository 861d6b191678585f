"""Facts about the machine a profile is recorded on."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from jupyter_ioscope.model.profile import Machine

_PACKAGES = ("torch", "datasets", "numpy", "pyarrow", "pillow", "ipykernel")


def cpu_quota(proc: str = "/proc", cgroup: str = "/sys/fs/cgroup") -> float | None:
    """Cores this process may use by its cgroup's quota (v2 `cpu.max`, v1 `cfs_quota_us`), or None.

    The smallest quota of the cgroup and its parents counts.
    """
    quotas: list[float] = []
    try:
        lines = Path(proc, "self", "cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            quotas += [q for q in map(_quota_v2, _upwards(Path(cgroup), path)) if q]
        elif "cpu" in controllers.split(","):
            root = Path(cgroup, controllers)
            root = root if root.is_dir() else Path(cgroup, "cpu")
            quotas += [q for q in map(_quota_v1, _upwards(root, path)) if q]
    return min(quotas, default=None)


def _upwards(root: Path, path: str) -> list[Path]:
    folder = root / path.lstrip("/")
    return [folder, *(p for p in folder.parents if p == root or root in p.parents)]


def _quota_v2(folder: Path) -> float | None:
    try:
        quota, period = (folder / "cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        return None


def _quota_v1(folder: Path) -> float | None:
    try:
        quota = int((folder / "cpu.cfs_quota_us").read_text())
        period = int((folder / "cpu.cfs_period_us").read_text())
        return quota / period if quota > 0 else None
    except (OSError, ValueError):
        return None


def memory_bytes() -> int:
    """Physical memory, 0 where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 0


def usable_cpus() -> int:
    """Cores this process may run on (affinity), or the number of cores."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def machine(gpus: tuple[str, ...] = ()) -> Machine:
    """Where we are. Versions are those of packages the program has imported."""
    packages = []
    for name in _PACKAGES:
        module = "PIL" if name == "pillow" else name
        if module in sys.modules:
            try:
                packages.append((name, version(name)))
            except PackageNotFoundError:
                packages.append((name, "unknown"))
    return Machine(
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
        ioscope=_own_version(),
        packages=tuple(packages),
        cpus=os.cpu_count() or 1,
        cpus_usable=usable_cpus(),
        cpu_quota=cpu_quota(),
        memory_bytes=memory_bytes(),
        gpus=gpus,
    )


def _own_version() -> str:
    try:
        return version("jupyter-ioscope")
    except PackageNotFoundError:
        return "unknown"
