"""Files that processes hold open, and how often the kernel sees them opened. Runs in the helper.

Python's audit hook knows nothing of files that a C library opens (HDF5, LMDB, Arrow, OpenCV). Here
they are found by looking at the descriptors of each process now and then; from then on inotify(7)
counts their opens. A file that is held for a moment only is found if that happens often, which is
when it matters.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import struct
import sys
import time
from collections.abc import Iterable
from typing import Any

from jupyter_ioscope.capture.shared_positions import Sharing
from jupyter_ioscope.model.observed import HeldFile

_LOOK_S, _FIRST_LOOKS_S, _AT_FIRST_S = 1.0, 0.25, 3.0  # between two looks; more often at first
_LOOK_SHARE = 0.0007  # of a core, at most
_MOST_FILES = 256
_MOST_FDS = 256  # of one process that are looked at
_MOST_WATCHED = 64

_IN_CLOSE_WRITE, _IN_CLOSE_NOWRITE, _IN_OPEN = 0x8, 0x10, 0x20  # linux/inotify.h
# Closes are asked for as well because equal events that come one after another are merged.
_MASK = _IN_OPEN | _IN_CLOSE_NOWRITE | _IN_CLOSE_WRITE
_EVENT = struct.Struct("iIII")
_READ_BYTES, _MOST_READS = 1 << 16, 4

_SYSTEM = ("/dev/", "/proc/", "/sys/", "/memfd:", "/anon_hugepage", "/usr/lib/", "/lib/")


class _Held:
    def __init__(self, size: int, pid: int) -> None:
        self.size, self.pids = size, {pid}
        self.seen = 0
        self.since_ns = time.monotonic_ns()
        self.opens = -1
        self.sharing = Sharing()


class HeldFiles:
    """Looks at descriptors on a slow beat and counts opens of the files found."""

    def __init__(self, proc: str, skip: Iterable[str]) -> None:
        self._proc = proc
        self._skip = (*_SYSTEM, *skip)
        self._files: dict[str, _Held] = {}
        self._not_wanted: set[str] = set()
        self._watched: dict[int, _Held] = {}
        self._inotify = -1
        self._began_s = time.monotonic()
        self._due_s = 0.0
        self.looks = 0  # at one process each

    def tick(self, pids: Iterable[int]) -> None:
        """Count what was opened; look at the descriptors when that is due."""
        self._count_opens()
        now_s = time.monotonic()
        if now_s < self._due_s:
            return
        used_s = time.thread_time()
        for pid in pids:
            self._look(pid)
        used_s = time.thread_time() - used_s
        young = now_s - self._began_s < _AT_FIRST_S
        pause_s = _FIRST_LOOKS_S / 2 if young else max(_LOOK_S, used_s / _LOOK_SHARE)
        self._due_s = now_s + pause_s

    def _look(self, pid: int) -> None:
        folder = f"{self._proc}/{pid}/fd"
        try:
            numbers = os.listdir(folder)[:_MOST_FDS]
        except OSError:
            return
        self.looks += 1
        # Not its standard streams: where they lead is nobody's data.
        own = [number for number in numbers if number not in ("0", "1", "2")]
        for path, number in {self._path(f"{folder}/{number}"): number for number in own}.items():
            held = self._files.get(path)
            if held is None:
                held = self._found(path, pid)
            if held is not None:
                held.seen += 1
                held.pids.add(pid)
                held.sharing.look(self._proc, pid, number)

    @staticmethod
    def _path(link: str) -> str:
        try:
            return os.readlink(link)
        except OSError:
            return ""

    def _found(self, path: str, pid: int) -> _Held | None:
        if not path.startswith("/") or path.startswith(self._skip) or path in self._not_wanted:
            return None
        if len(self._files) >= _MOST_FILES:
            return None
        size = -1
        with contextlib.suppress(OSError, ValueError):  # gone already, or of another namespace
            seen = os.stat(path)
            size = seen.st_size if stat.S_ISREG(seen.st_mode) else -1
        if size < 0:
            if len(self._not_wanted) < _MOST_FILES:
                self._not_wanted.add(path)
            return None
        held = self._files[path] = _Held(size, pid)
        self._watch(path, held)
        return held

    def _watch(self, path: str, held: _Held) -> None:
        """Where the machine allows no more watches, opens stay unknown."""
        if len(self._watched) >= _MOST_WATCHED or not sys.platform.startswith("linux"):
            return
        with contextlib.suppress(OSError, AttributeError, UnicodeError):
            libc = ctypes.CDLL(None)
            if self._inotify < 0:
                self._inotify = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
            number = libc.inotify_add_watch(self._inotify, os.fsencode(path), _MASK)
            if number >= 0:
                held.opens = 0
                self._watched[number] = held

    def _count_opens(self) -> None:
        if not self._watched:
            return
        with contextlib.suppress(OSError):  # nothing there
            for _ in range(_MOST_READS):
                raw = os.read(self._inotify, _READ_BYTES)
                self._count(raw)
                if len(raw) < _READ_BYTES // 2:
                    return

    def _count(self, raw: bytes) -> None:
        place = 0
        while place + _EVENT.size <= len(raw):
            number, mask, _, length = _EVENT.unpack_from(raw, place)
            held = self._watched.get(number)
            if held is not None and mask & _IN_OPEN:
                held.opens += 1
            place += _EVENT.size + length

    def packed(self) -> list[dict[str, Any]]:
        """What was seen, ready for JSON; after a last `tick`."""
        self._count_opens()
        return [
            {
                "path": path,
                "pids": sorted(held.pids),
                "seen": held.seen,
                "looks": self.looks,
                "opens": held.opens,
                "since_ns": held.since_ns,
                "size_bytes": held.size,
                "sharing": sorted(held.sharing.pids),
                "positions": len(held.sharing.positions),
            }
            for path, held in self._files.items()
        ]

    def close(self) -> None:
        fd, self._inotify = self._inotify, -1
        self._watched.clear()
        if fd >= 0:
            with contextlib.suppress(OSError):
                os.close(fd)


def unpacked(rows: Iterable[dict[str, Any]]) -> tuple[HeldFile, ...]:
    """The rows of `HeldFiles.packed`, the most opened first."""
    found = [
        HeldFile(
            path=str(row["path"]).encode("utf-8", "backslashreplace").decode("utf-8"),
            pids=tuple(int(pid) for pid in row["pids"]),
            seen=int(row["seen"]),
            looks=int(row["looks"]),
            opens=int(row["opens"]),
            since_ns=int(row["since_ns"]),
            size_bytes=int(row["size_bytes"]),
            sharing=tuple(int(pid) for pid in row.get("sharing", ())),
            positions=int(row.get("positions", 0)),
        )
        for row in rows
    ]
    return tuple(sorted(found, key=lambda row: (-row.opens, -row.seen, row.path)))
