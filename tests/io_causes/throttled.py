"""A device that gives this process and its children so many bytes a second: by a control group.

Needs root, a block device below the folder, and the blkio (version 1) or io (version 2) controller.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

V1, V2 = Path("/sys/fs/cgroup/blkio"), Path("/sys/fs/cgroup")


def why_not(folder: Path) -> str:
    """What is lacking for throttling the device below `folder`; empty where nothing is."""
    if not sys.platform.startswith("linux"):
        return "control groups are there on Linux only"
    if os.geteuid():
        return "throttling a device needs root"
    if not device_of(folder):
        return f"no block device lies below {folder}"
    if not _files():
        return "neither the blkio nor the io controller of control groups is there"
    if not os.access(V1 if V1.is_dir() else V2, os.W_OK):
        return "the control groups of this container are read-only"
    return ""


def device_of(folder: Path) -> str:
    """`major:minor` of the whole disk below a folder; empty where there is none."""
    number = os.stat(folder).st_dev
    here = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    for path in (here, here.parent):  # a disk, or a partition of one
        if (path / "queue").is_dir():
            return (path / "dev").read_text().strip()
    return ""


def _files() -> tuple[str, str, str] | None:
    """(limit of bytes, limit of requests, list of processes) of the version that is there."""
    if (V1 / "blkio.throttle.read_bps_device").exists() or (V1 / "cgroup.procs").exists():
        return "blkio.throttle.read_bps_device", "blkio.throttle.read_iops_device", "cgroup.procs"
    controllers = V2 / "cgroup.controllers"
    if controllers.exists() and "io" in controllers.read_text().split():
        return "io.max", "io.max", "cgroup.procs"
    return None


@contextlib.contextmanager
def throttled(
    folder: Path, bytes_per_s: int | None = None, reads_per_s: int | None = None
) -> Iterator[None]:
    """Throttle what this process, and the children it starts meanwhile, read from the device.

    Raises:
        OSError: the kernel refuses.
        RuntimeError: `why_not` has a reason.
    """
    reason = why_not(folder)
    files = _files()
    if reason or files is None:
        raise RuntimeError(reason)
    base = V1 if files[0] != "io.max" else V2
    group = base / f"ioscope-test-{os.getpid()}"
    before = _own_group(base)
    group.mkdir()
    try:
        for name, line in _limits(files, device_of(folder), bytes_per_s, reads_per_s):
            (group / name).write_text(line)
        (group / files[2]).write_text(str(os.getpid()))
        yield
    finally:
        (before / files[2]).write_text(str(os.getpid()))
        for pid in (group / files[2]).read_text().split():  # workers that are still ending
            with contextlib.suppress(OSError):
                (before / files[2]).write_text(pid)
        group.rmdir()


def _limits(
    files: tuple[str, str, str], device: str, bytes_per_s: int | None, reads_per_s: int | None
) -> Iterator[tuple[str, str]]:
    if files[0] == "io.max":
        words = [f"rbps={bytes_per_s or 'max'}", f"riops={reads_per_s or 'max'}"]
        yield files[0], f"{device} {' '.join(words)}"
        return
    if bytes_per_s:
        yield files[0], f"{device} {bytes_per_s}"
    if reads_per_s:
        yield files[1], f"{device} {reads_per_s}"


def _own_group(base: Path) -> Path:
    """The group this process is in, below `base`."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if ("blkio" in controllers.split(",")) if base == V1 else not controllers:
            return base / path.lstrip("/")
    return base
