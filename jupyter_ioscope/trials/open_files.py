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
    with contextlib.suppress(OSError):  # not on every system
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):  # the listing's own, or may not be opened again
                _take(int(name), folder, tuple(private), note)


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


def _take(fd: int, folder: str, private: tuple[str, ...], note: Note) -> None:
    import fcntl  # not on every system

    found = os.fstat(fd)
    path = os.readlink(f"/proc/self/fd/{fd}")
    if not stat.S_ISREG(found.st_mode) or path.startswith((*_ELSEWHERE, *private)):
        return
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    position = os.lseek(fd, 0, os.SEEK_CUR)
    writes_only = flags & os.O_ACCMODE == os.O_WRONLY
    kept = flags & _KEPT_FLAGS | os.O_CLOEXEC
    name = f"open-{fd}"
    if writes_only:
        new = os.open(os.path.join(folder, name), kept | os.O_CREAT, 0o600)
    else:
        new = os.open(f"/proc/self/fd/{fd}", kept)
    try:
        if writes_only:
            os.ftruncate(new, found.st_size)
            os.utime(new, ns=(_UNWRITTEN_NS, _UNWRITTEN_NS))
            note("stand-in", path, name)
        elif flags & os.O_ACCMODE == os.O_RDWR:
            note("open", path, f"{found.st_size} {found.st_mtime_ns}")
        os.lseek(new, position, os.SEEK_SET)
        os.dup2(new, fd, os.get_inheritable(fd))
    finally:
        os.close(new)
