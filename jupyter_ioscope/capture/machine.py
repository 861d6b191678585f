"""Facts about the machine a profile is recorded on."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from jupyter_ioscope.capture.cores import affinity_cores, quota_cores, sharing_ranks
from jupyter_ioscope.capture.machine_limits import (
    memory_limit_bytes,
    native_threads,
    open_files_limit,
    parents_cores,
    shm_bytes,
)
from jupyter_ioscope.model.profile import Machine

_PACKAGES = (
    "torch",
    "datasets",
    "numpy",
    "pyarrow",
    "pillow",
    "ipykernel",
    "tokenizers",
    "transformers",
    "accelerate",
)


def memory_bytes() -> int:
    """Physical memory, 0 where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 0


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
        cpus_usable=affinity_cores(),
        cpu_quota=quota_cores(),
        memory_bytes=memory_bytes(),
        gpus=gpus,
        cpus_of_parent=parents_cores(),
        memory_limit_bytes=memory_limit_bytes(),
        shm_bytes=shm_bytes(),
        open_files_limit=open_files_limit(),
        native_threads=native_threads(),
        ranks=sharing_ranks(),
    )


def _own_version() -> str:
    try:
        return version("jupyter-ioscope")
    except PackageNotFoundError:
        return "unknown"
