"""Files that the kernel has open, made a copy's own.

A forked child shares the position of each open file with its parent, and what it writes there is
in the user's file, without any call that names it. So each descriptor gets an open file of its own:
for reading, another one of the same file; for writing only, an empty one of the same size, whose
content is dropped.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable

# Shared memory is meant to be shared, and the rest has no content of its own.
_ELSEWHERE = ("/dev/", "/memfd:", "/proc/", "/sys/")
_KEPT_FLAGS = os.O_ACCMODE | os.O_APPEND | os.O_NONBLOCK
_UNWRITTEN_NS = 0  # time stamp of a stand-in that nobody wrote to

Note = Callable[[str, str, str], None]


def take_apart(folder: str, private: Iterable[str], note: Note) -> None:
    """Give this process's descriptors open files of their own. `note(kind, path, what)` is told
    "stand-in" with the name of its file in `folder`, or "open" with the stamp of a file that is
    open for reading and writing: that one is written to."""
    for fd in _descriptors():
        with contextlib.suppress(OSError):
            _take(fd, folder, tuple(private), note)


def own_positions(private: Iterable[str]) -> None:
    """Give descriptors that can be read open files of their own, at the same place: what a copy
    reads then moves nothing of the process that it was copied from. Files below the folders
    `private` are left out."""
    for fd in _descriptors():
        with contextlib.suppress(OSError):
            _take(fd, "", tuple(private), None)


def _descriptors() -> list[int]:
    with contextlib.suppress(OSError):  # not on every system
        return [int(name) for name in os.listdir("/proc/self/fd")]
    return []


def was_written(path: str) -> bool:
    """Whether anything was written to a stand-in."""
    with contextlib.suppress(OSError):
        return os.stat(path).st_mtime_ns != _UNWRITTEN_NS
    return False


def stamp(path: str) -> str:
    """Size and time of change; "" where there is no such file."""
    with contextlib.suppress(OSError):
        found = os.stat(path)
        return f"{found.st_size} {found.st_mtime_ns}"
    return ""


def _take(fd: int, folder: str, private: tuple[str, ...], note: Note | None) -> None:
    import fcntl  # not on every system

    found = os.fstat(fd)  # fails for the descriptor that listed the others
    path = os.readlink(f"/proc/self/fd/{fd}")
    if not stat.S_ISREG(found.st_mode) or path.startswith((*_ELSEWHERE, *private)):
        return
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    position = os.lseek(fd, 0, os.SEEK_CUR)
    kept = flags & _KEPT_FLAGS | os.O_CLOEXEC
    if flags & os.O_ACCMODE == os.O_WRONLY:
        if note is None:
            return
        new = _stand_in(os.path.join(folder, f"open-{fd}"), kept, found.st_size)
        note("stand-in", path, f"open-{fd}")
    else:
        new = os.open(f"/proc/self/fd/{fd}", kept)  # may not be opened again: it stays shared
        if note is not None and flags & os.O_ACCMODE == os.O_RDWR:
            note("open", path, f"{found.st_size} {found.st_mtime_ns}")
    try:
        os.lseek(new, position, os.SEEK_SET)
        os.dup2(new, fd, os.get_inheritable(fd))
    finally:
        os.close(new)


def _stand_in(path: str, flags: int, size_bytes: int) -> int:
    new = os.open(path, flags | os.O_CREAT, 0o600)
    os.ftruncate(new, size_bytes)
    os.utime(new, ns=(_UNWRITTEN_NS, _UNWRITTEN_NS))
    return new
