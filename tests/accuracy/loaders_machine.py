"""Troubles with what the process may use of the machine."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader

from tests.accuracy.loader import STEPS_BESIDE, TINY, CannotRun, Items, Loader, compute

QUOTA = Path("/sys/fs/cgroup/cpu")


class Computing(Loader):
    """Two workers that compute."""

    steps = STEPS_BESIDE
    severities = ("severe", "clear")

    def make_loader(self) -> DataLoader[Any]:
        def get(index: int) -> Any:
            compute(0.003)
            return TINY

        return DataLoader(Items(320, get), batch_size=8, num_workers=2)


class OneCore(Computing):
    """Something bound the process, and with it its workers, to a single core."""

    causes = ("affinity",)
    advice = ("affinity", "sched_setaffinity", "taskset", "cores")

    def prepare(self) -> None:
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2:
            raise CannotRun("this machine has one core: nothing can be bound to fewer")
        os.sched_setaffinity(0, cores[:1])


class HalfACore(Computing):
    """A control group gives the process and its workers half a core."""

    causes = ("cpu_quota",)
    advice = ("quota", "limit", "cores", "container")

    def prepare(self) -> None:
        self.group = QUOTA / f"ioscope-test-{os.getpid()}"
        if not os.access(QUOTA / "cpu.cfs_quota_us", os.R_OK) and not QUOTA.is_dir():
            raise CannotRun("there is no cpu controller (version 1) to set a quota with")
        try:
            self.group.mkdir()
            (self.group / "cpu.cfs_quota_us").write_text("50000")
            (self.group / "cgroup.procs").write_text(str(os.getpid()))
        except OSError as error:
            self.clean_up()
            raise CannotRun(f"setting a quota needs root and a control group: {error}") from error

    def clean_up(self) -> None:
        for _ in range(50):  # the helper and ending workers are in it as well
            with contextlib.suppress(OSError):
                for pid in (self.group / "cgroup.procs").read_text().split():
                    with contextlib.suppress(OSError):
                        (QUOTA / "cgroup.procs").write_text(pid)
            with contextlib.suppress(OSError):
                self.group.rmdir()
            if not self.group.exists():
                break
        super().clean_up()
