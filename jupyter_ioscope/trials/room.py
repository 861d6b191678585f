"""How many workers and waiting batches memory has room for."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from jupyter_ioscope.capture.cores import cores_per_rank, sharing_ranks
from jupyter_ioscope.model.prediction import Setting
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.storage.cgroups import Groups
from jupyter_ioscope.units import bytes_text

MOST_WORKERS = 64
# What the trials may take of the memory that is free now: the user's own step needs some, too.
_PART = 0.5
_TRIAL_PART = 0.85


@dataclass(frozen=True)
class Room:
    """Bytes that are free, and what a worker and a batch take of them (0: unknown)."""

    cores: float
    memory_bytes: int
    shm_bytes: int
    worker_bytes: int = 0
    batch_bytes: int = 0

    @property
    def most_workers(self) -> int:
        if not self.worker_bytes:
            return MOST_WORKERS
        return max(1, min(MOST_WORKERS, int(_PART * self.memory_bytes / self.worker_bytes)))

    def refuses(self, setting: Setting) -> str:
        """Why a setting does not fit, or ""."""
        # A batch being made, those that wait, and one that the consumer holds.
        held = setting.workers * (setting.prefetch + 1) + 1
        batches = held * self.batch_bytes
        if setting.workers and batches > _PART * self.shm_bytes:
            return (
                f"{held} batches of {bytes_text(self.batch_bytes)} take more than half of the "
                f"{bytes_text(self.shm_bytes)} of shared memory that is free"
            )
        needed = setting.workers * self.worker_bytes + batches
        if needed > _PART * self.memory_bytes:
            return (
                f"workers and batches would take {bytes_text(needed)}, more than half of the "
                f"{bytes_text(self.memory_bytes)} that are free"
            )
        return ""


def room_for(profile: Profile | None) -> Room:
    """The room on this machine now, this process's part of it where several ranks of a job train
    here, with the sizes that a profile of the loader showed."""
    workers = [row for row in profile.processes if row.worker >= 0] if profile else []
    fetches = [row.batch_bytes for row in profile.fetches] if profile else []
    private = [row.last_private_bytes for row in workers if row.last_private_bytes > 0]
    ranks = sharing_ranks()  # each of them starts as many workers
    return Room(
        cores=cores_per_rank(),
        memory_bytes=free_memory_bytes() // ranks,
        shm_bytes=_free_shm_bytes() // ranks,
        worker_bytes=int(median(private)) if private else 0,
        batch_bytes=int(median(fetches)) if fetches else 0,
    )


def memory_limit_bytes() -> int:
    """What the processes of one trial may hold: most of what is free, never all of it."""
    return int(_TRIAL_PART * free_memory_bytes())


def free_memory_bytes() -> int:
    """What the machine and this process's cgroup leave; very much where nothing tells."""
    found = [_available(), _cgroup_left()]
    return min(value for value in (*found, 1 << 50) if value >= 0)


def _available() -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return -1


def _cgroup_left() -> int:
    """What the limits of this process's control groups leave; -1 without one."""
    found = Groups().memory()
    return found.left_bytes if found is not None else -1


def _free_shm_bytes() -> int:
    try:
        found = os.statvfs("/dev/shm")
    except OSError:
        return 1 << 50
    return found.f_bavail * found.f_frsize
