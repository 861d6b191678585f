"""Limits of this process that make a loader slow or kill it. All answers are 0 where unknown."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from pathlib import Path
from typing import Any

# What libraries read to learn how many threads to use. None of them is set by default.
_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "BLIS_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "RAYON_NUM_THREADS",
    "RAYON_RS_NUM_CPUS",
    "TOKENIZERS_PARALLELISM",
    "ARROW_NUM_THREADS",
    "OMP_PROC_BIND",
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
)
_LONGEST = 80  # characters of a value that are kept
# A cgroup without a limit says so with a number near the largest there is.
_NO_LIMIT_BYTES = 1 << 60


def native_threads() -> tuple[tuple[str, str], ...]:
    """(setting, value) of every thread setting that was made; torch's own where it is loaded."""
    found = [(name, os.environ[name][:_LONGEST]) for name in _VARIABLES if name in os.environ]
    torch: Any = sys.modules.get("torch")
    with contextlib.suppress(Exception):
        found.append(("torch.get_num_threads()", str(int(torch.get_num_threads()))))
    return tuple(found)


def parents_cores() -> int:
    """Cores of the affinity mask of the process that started this one."""
    with contextlib.suppress(OSError, AttributeError):
        return len(os.sched_getaffinity(os.getppid()))
    return 0


def shm_bytes(path: str = "/dev/shm") -> int:
    """Size of the file system that workers pass batches through."""
    with contextlib.suppress(OSError, AttributeError):
        found = os.statvfs(path)
        return found.f_blocks * found.f_frsize
    return 0


def open_files_limit() -> int:
    """Soft limit of open descriptors of this process."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 0 if soft == resource.RLIM_INFINITY else soft


def memory_limit_bytes(root: str = "/sys/fs/cgroup", proc: str = "/proc/self/cgroup") -> int:
    """The smallest memory limit from this process's cgroup up to the root (v2 and v1)."""
    found = []
    for line in _read(Path(proc)).splitlines():
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if number == "0":
            found += _limits(Path(root), path, "memory.max")
        elif "memory" in controllers.split(","):
            found += _limits(Path(root, "memory"), path, "memory.limit_in_bytes")
    known = [value for value in found if 0 < value < _NO_LIMIT_BYTES]
    return min(known, default=0)


def _limits(base: Path, path: str, name: str) -> list[int]:
    folder = base / path.strip("/")
    above = folder.parents[: len(folder.parts) - len(base.parts)]
    texts = [_read(place / name).strip() for place in (folder, *above, base)]
    return [int(text) for text in texts if text.isdigit()]


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
