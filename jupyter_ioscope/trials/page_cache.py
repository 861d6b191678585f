"""Which files an arm opens, whether they are in the page cache, and how to evict them."""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import stat
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from jupyter_ioscope.storage import page_cache
from jupyter_ioscope.units import bytes_text, percent

_MOST_FILES = 20_000
_MOST_PROVEN = 2_000  # a file costs about 10 µs to ask about
_LEAST_LOOKS = 4  # pages of a file where the kernel does not count, and they are tried
_SKIPPED = ("/proc/", "/sys/", "/dev/")
_CODE = (".py", ".pyc", ".so")
_WRITES = os.O_WRONLY | os.O_RDWR


class LearnFiles:
    """An in-child change: paths that Python opens are appended to a private file, by the process
    and its workers alike. Audit hooks cannot be removed, so this is for short-lived processes."""

    def __init__(self, path: str) -> None:
        self.path = path

    def install(self) -> None:
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        seen: set[str] = set()

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if event != "open" or len(seen) >= _MOST_FILES:
                return
            path, flags = arguments[0], arguments[2]
            if isinstance(flags, int) and flags & _WRITES:
                return
            if isinstance(path, bytes):
                path = os.fsdecode(path)
            if not isinstance(path, str) or path in seen or path.endswith(_CODE):
                return
            seen.add(path)
            with contextlib.suppress(OSError, ValueError):
                os.write(fd, os.fsencode(os.path.abspath(path)) + b"\0")

        sys.addaudithook(hook)

    def found(self) -> set[str]:
        """Absolute paths noted so far that are regular files."""
        try:
            with open(self.path, "rb") as file:
                names = {os.fsdecode(name) for name in file.read().split(b"\0") if name}
        except OSError:
            return set()
        return {name for name in names if name != self.path and _is_data(name)}


def mapped_files(pids: Iterable[int]) -> set[str]:
    """Data files that this process and `pids` hold open or mapped: libraries written in C (HDF5,
    Arrow, LMDB) open them without Python noticing. Of mappings those count that were looked at."""
    found: set[str] = set()
    for pid in (os.getpid(), *pids):
        with contextlib.suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    if not _for_writing(pid, fd):
                        found.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
        found |= _with_pages(pid)
    ours = (f"{sys.prefix}/", f"{sys.base_prefix}/", "/usr/", "/lib")
    return {
        name for name in found if not name.startswith(ours) and ".so" not in name and _is_data(name)
    }


def _with_pages(pid: int) -> set[str]:
    """Files of which a process has pages in its mappings. Those that it got from its parent begin
    without any (fork leaves it to the first access), so another data set that lies mapped in the
    user's process does not count as one of this loader's."""
    found: set[str] = set()
    name = ""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps", errors="replace") as maps:
        for line in maps:
            if line.startswith("Rss:"):
                if name and int(line.split()[1]):
                    found.add(name)
            elif not line[0].isupper():  # addresses, rights, place and file
                name = line[line.index("/") :].rstrip("\n") if "/" in line else ""
    return found


def _for_writing(pid: int, fd: str) -> bool:
    """Log files and databases that the program keeps open for writing are not the loader's data."""
    with open(f"/proc/{pid}/fdinfo/{fd}") as file:
        flags = next((line.split()[1] for line in file if line.startswith("flags:")), "0")
    return bool(int(flags, 8) & _WRITES)


def _is_data(name: str) -> bool:
    if name.startswith(_SKIPPED) or name.endswith(_CODE):
        return False
    with contextlib.suppress(OSError, ValueError):
        found = os.stat(name)
        return stat.S_ISREG(found.st_mode) and found.st_size > 0
    return False


class Residency(NamedTuple):
    """How much of some files is in the page cache. `method` is "" when nothing could be proven."""

    fraction: float
    files: int
    size_bytes: int
    method: str

    def text(self) -> str:
        if not self.method:
            return "what was in the page cache could not be proven"
        return f"{percent(self.fraction)} of {self.files:,} files ({bytes_text(self.size_bytes)})"


def residency(paths: Sequence[str]) -> Residency:
    """Ask the kernel how much of `paths` is cached (of 2,000 drawn at random when there are more);
    `files` and `size_bytes` are those of all."""
    sizes = {path: _size(path) for path in paths}
    asked = list(paths)
    if len(asked) > _MOST_PROVEN:
        asked = random.Random(len(asked)).sample(asked, _MOST_PROVEN)
    pages, cached, method = 0, 0.0, ""
    looks = max(_LEAST_LOOKS, page_cache.LOOKED_AT // max(1, len(asked)))
    for path in asked:
        found, how = _resident(path, sizes[path], looks)
        if how:
            of_file = -(-sizes[path] // mmap.PAGESIZE)
            cached, pages, method = cached + found * of_file, pages + of_file, how
    fraction = min(1.0, cached / pages) if pages else 0.0
    return Residency(fraction, len(sizes), sum(sizes.values()), method if pages else "")


def evict(paths: Iterable[str]) -> None:
    """Drop files from the page cache, without root. Pages mapped by a living process stay."""
    for path in paths:
        with contextlib.suppress(OSError):
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                page_cache.evict(fd)  # where the system cannot, the residency printed says so
            finally:
                os.close(fd)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _resident(path: str, size: int, looks: int) -> tuple[float, str]:
    """As `storage.page_cache.resident`, of a file that may be gone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1.0, ""
    try:
        return page_cache.resident(fd, size, looks)
    finally:
        os.close(fd)
