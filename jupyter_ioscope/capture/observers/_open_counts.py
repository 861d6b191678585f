"""Counts of opened files: a table in memory, kept in a mapped file where a process may be killed.

Counting takes no lock that could be waited for: the hook it serves may run in any thread, inside a
signal handler, or in a child that was forked while another thread counted.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from jupyter_ioscope.model.observed import PHASES

Key = tuple[str, int, int]  # path, index into PHASES, index into MODES
MODES = ("r", "w", "rw")

MAX_PATHS = 20_000  # a process; further ones are counted under one name
_MAX_WAITING = 100_000
MORE = "(more files)"

_HEADER = struct.Struct("<8sii")
_ROW = struct.Struct("<QHBB4x")  # count, length of the path, phase, mode; the path follows
_COUNT = struct.Struct("<Q")
_MAGIC = b"iosc-opn"
_CHUNK_BYTES = 1 << 16


class OpenCounts:
    """How often each (path, phase, mode) was opened. `keep` makes the file that holds the counts as
    well; it is called with the first of them, once, and never where nothing is opened."""

    def __init__(self, keep: Callable[[], KeptCounts] | None = None) -> None:
        self._counts: dict[Key, int] = {}
        self._places: dict[Key, int] = {}
        self._keep = keep
        self._kept: KeptCounts | None = None
        self._waiting: deque[Key] = deque(maxlen=_MAX_WAITING)
        self._counting = threading.Lock()

    def note(self, key: Key) -> None:
        """One more; safe in any thread and in a signal handler that interrupts another note."""
        self._waiting.append(key)
        # Whoever holds the lock looks again after letting go of it: nothing stays waiting.
        while self._waiting and self._counting.acquire(blocking=False):
            try:
                while self._waiting:
                    self._count(self._waiting.popleft())
            finally:
                self._counting.release()

    def _count(self, key: Key) -> None:
        before = self._counts.get(key, 0)
        if not before and len(self._counts) >= MAX_PATHS:
            key = (MORE, *key[1:])
            before = self._counts.get(key, 0)
        self._counts[key] = before + 1
        if self._keep is not None:
            keep, self._keep = self._keep, None
            with contextlib.suppress(OSError):
                self._kept = keep()
        if self._kept is not None:
            if not before:
                self._places[key] = self._kept.add(key)
            else:
                self._kept.count(self._places[key], before + 1)

    def rows(self) -> list[tuple[Key, int]]:
        return list(self._counts.items())

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()


class KeptCounts:
    """The counts in pages of a file, so that a killed process loses none.

    The pages are written as zeros before they are mapped: a full disk gives an error here, where
    it can be handled, and never a bus error later.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(self, path: str, worker: int) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._map: mmap.mmap | None = None
        self._size = 0
        self._end = _HEADER.size
        try:
            pages = self._grow()
        except BaseException:
            self.close()
            raise
        pages[: _HEADER.size] = _HEADER.pack(_MAGIC, os.getpid(), worker)

    def add(self, key: Key) -> int:
        """Make room for a key with the count 1; its place, -1 where there is no room."""
        path = key[0].encode("utf-8", "surrogatepass")[:0xFFFF]
        start, length = self._end, _padded(_ROW.size + len(path))
        pages = self._map
        with contextlib.suppress(OSError, ValueError):
            while pages is not None and start + length > self._size:
                pages = self._grow()
            if pages is not None:
                row = _ROW.pack(1, len(path), *key[1:]) + path
                # The count comes last: a reader stops at a row without one.
                pages[start + 8 : start + len(row)] = row[8:]
                pages[start : start + 8] = row[:8]
                self._end += length
                return start
        return -1

    def count(self, place: int, count: int) -> None:
        pages = self._map
        if place >= 0 and pages is not None:
            _COUNT.pack_into(pages, place, count)

    def _grow(self) -> mmap.mmap:
        if self._size and os.fstat(self._fd).st_nlink == 0:
            self.close()  # the profile is over and its folder gone; the worker lives on
            raise OSError("the profile is over")
        if os.pwrite(self._fd, bytes(_CHUNK_BYTES), self._size) != _CHUNK_BYTES:
            raise OSError("the disk is full")
        larger = mmap.mmap(self._fd, self._size + _CHUNK_BYTES)
        if self._map is not None:
            self._map.close()
        self._map, self._size = larger, self._size + _CHUNK_BYTES
        return larger

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        pages, self._map = self._map, None
        if pages is not None:
            pages.close()
        if fd >= 0:
            with contextlib.suppress(OSError):
                os.close(fd)


def read_kept(folder: str) -> Iterator[tuple[int, int, list[tuple[Key, int]]]]:
    """(pid, worker, counts) of every file of kept counts in `folder`."""
    for path in sorted(Path(folder).glob("opens-*.bin")):
        with contextlib.suppress(OSError, struct.error):
            raw = path.read_bytes()
            magic, pid, worker = _HEADER.unpack_from(raw)
            if magic == _MAGIC:
                yield pid, worker, list(_rows(raw))


def _rows(raw: bytes) -> Iterator[tuple[Key, int]]:
    place = _HEADER.size
    while place + _ROW.size <= len(raw):
        count, length, phase, mode = _ROW.unpack_from(raw, place)
        if not count or phase >= len(PHASES) or mode >= len(MODES):
            return
        start = place + _ROW.size
        if start + length > len(raw):
            return
        path = raw[start : start + length].decode("utf-8", "surrogatepass")
        yield (path, phase, mode), count
        place += _padded(_ROW.size + length)


def _padded(length: int) -> int:
    return (length + 7) // 8 * 8
