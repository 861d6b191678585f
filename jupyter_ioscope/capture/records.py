"""Per-batch records of the consumer and the workers.

The consumer's records stay in memory. A worker appends its own to a private file, one fixed-size
record a fetch, which survives a killed worker.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import resource
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from jupyter_ioscope.model.records import Fetch, WorkerInfo

# Start, end, collate, CPU, task, resume count, samples, four rusage deltas, read blocks,
# tensors, bytes, digest.
_FETCH = struct.Struct("<qqqqiiiiiiiqiqq")
_HEADER = struct.Struct("<8siiiiiqq")
_FOOTER = struct.Struct("<8sqq")
_MAGIC = b"iosc-rec"
_END = b"iosc-end"
_WHO = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)

# The size of a batch is looked at for the first fetches of a worker and then now and then:
# walking a batch of many objects costs more than everything else in a record.
_SIZE_ALWAYS = 8
_SIZE_EVERY = 16
_SIZE_APART = 100  # so many times as long as a look took, none follows: it costs 1 % at most
_MAX_OBJECTS = 5_000
_CHUNK_BYTES = 1 << 16  # room for 800 records; a multiple of every page size in use


class Usage(NamedTuple):
    """Readings of the calling thread at one instant."""

    time_ns: int
    cpu_ns: int
    minor_faults: int
    major_faults: int
    voluntary: int
    involuntary: int
    read_blocks: int


def usage() -> Usage:
    """Clock, CPU time, faults and switches of the calling thread (about 2.5 µs)."""
    used = resource.getrusage(_WHO)
    return Usage(
        time.monotonic_ns(),
        time.thread_time_ns(),
        used.ru_minflt,
        used.ru_majflt,
        used.ru_nvcsw,
        used.ru_nivcsw,
        used.ru_inblock,
    )


def fetch_between(
    start: Usage,
    end: Usage,
    collate_start_ns: int,
    *,
    worker: int,
    pid: int,
    loader: int,
    epoch: int,
    task: int,
    samples: int,
    size: tuple[int, int],
    digest: int = 0,
) -> Fetch:
    """The record of a fetch from the readings at its two ends. `size` is (objects, bytes)."""
    return Fetch(
        worker=worker,
        pid=pid,
        loader=loader,
        epoch=epoch,
        task=task,
        start_ns=start.time_ns,
        end_ns=end.time_ns,
        collate_ns=end.time_ns - collate_start_ns if collate_start_ns else 0,
        cpu_ns=end.cpu_ns - start.cpu_ns,
        samples=samples,
        major_faults=end.major_faults - start.major_faults,
        minor_faults=end.minor_faults - start.minor_faults,
        voluntary_switches=end.voluntary - start.voluntary,
        involuntary_switches=end.involuntary - start.involuntary,
        read_blocks=end.read_blocks - start.read_blocks,
        tensors=size[0],
        batch_bytes=size[1],
        digest=digest,
    )


def batch_size_of(data: Any) -> tuple[int, int]:
    """(objects that travel on their own, bytes) of a batch.

    Counted: tensors, arrays, strings, bytes and numbers inside lists, tuples and dicts. A batch
    with more than 5,000 of them is cut off there: the count is then a lower bound.
    """
    objects = size = 0
    todo: list[Any] = [data]
    while todo and objects < _MAX_OBJECTS:
        item = todo.pop()
        if isinstance(item, dict):
            todo.extend(item.values())
        elif isinstance(item, (list, tuple)):
            todo.extend(item[: _MAX_OBJECTS - objects])
        else:
            objects += 1
            size += _bytes_of(item)
    return objects, size


def _bytes_of(item: Any) -> int:
    nbytes = getattr(item, "nbytes", None)
    if isinstance(nbytes, int):
        return nbytes
    if isinstance(item, (str, bytes, bytearray)):
        return len(item)
    if type(item).__module__.startswith("PIL."):  # a decoded picture: a byte a channel and pixel
        width, height = item.size
        return int(width) * int(height) * len(item.getbands())
    return 8 if isinstance(item, (int, float, bool)) else 0


class SizeOfBatch:
    """Looks at some batches and repeats the newest answer for the others."""

    def __init__(self) -> None:
        self._seen = 0
        self._last = (0, 0)
        self._not_before_ns = 0

    def __call__(self, data: Any) -> tuple[int, int]:
        if self._seen < _SIZE_ALWAYS or self._seen % _SIZE_EVERY == 0:
            now_ns = time.monotonic_ns()
            if now_ns >= self._not_before_ns:
                self._last = batch_size_of(data)
                end_ns = time.monotonic_ns()
                self._not_before_ns = end_ns + _SIZE_APART * (end_ns - now_ns)
        self._seen += 1
        return self._last


class WorkerLog:
    """A worker's own record file. Never raises after it was opened: what is lost is counted.

    Records go into mapped pages, because a system call would let go of the GIL in the middle of
    the worker's loop. The pages are written as zeros before they are mapped: so a full disk
    gives an error here, where it can be handled, and never a bus error later.
    """

    def __init__(self, folder: str, worker: int, loader: int, epoch: int, created_ns: int) -> None:
        self._fd = os.open(
            os.path.join(folder, f"worker-{os.getpid()}-{time.monotonic_ns()}.rec"),
            os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC,
            0o600,
        )
        self.lost = 0
        self._map: mmap.mmap | None = None
        self._size = self._end = 0
        who = (os.getpid(), threading.get_native_id(), worker, loader, epoch)
        header = _HEADER.pack(_MAGIC, *who, created_ns, time.monotonic_ns())
        if self._room_for(len(header)):
            self._write(header)

    def fetch(
        self,
        start: Usage,
        end: Usage,
        collate_start_ns: int,
        task: int,
        resumed: int,
        samples: int,
        size: tuple[int, int],
        digest: int = 0,
    ) -> None:
        """Append the record of a fetch between two readings; `size` is (objects, bytes)."""
        if not self._room_for(_FETCH.size):
            return
        self._write(
            _FETCH.pack(
                start.time_ns,
                end.time_ns,
                end.time_ns - collate_start_ns if collate_start_ns else 0,
                end.cpu_ns - start.cpu_ns,
                task,
                resumed,
                samples,
                end.minor_faults - start.minor_faults,
                end.major_faults - start.major_faults,
                end.voluntary - start.voluntary,
                end.involuntary - start.involuntary,
                end.read_blocks - start.read_blocks,
                size[0],
                size[1],
                digest,
            )
        )

    def close(self) -> None:
        """Note the worker's end. Padded to the record length, so that a reader can step."""
        if self._room_for(_FETCH.size):
            footer = _FOOTER.pack(_END, time.monotonic_ns(), self.lost)
            self._write(footer.ljust(_FETCH.size, b"\0"))
        self._give_up()

    def _room_for(self, size: int) -> bool:
        """Whether `size` bytes fit, after growing the file if they must; counts what is lost."""
        if self._end + size > self._size and self._fd >= 0:
            try:
                self._grow()
            except (OSError, ValueError):
                self.lost += 1
                return False
        return self._map is not None

    def _grow(self) -> None:
        if self._size and os.fstat(self._fd).st_nlink == 0:
            self._give_up()  # the profile is over and its folder gone; the worker lives on
            return
        if os.pwrite(self._fd, bytes(_CHUNK_BYTES), self._size) != _CHUNK_BYTES:
            raise OSError("the disk is full")
        larger = mmap.mmap(self._fd, self._size + _CHUNK_BYTES)
        if self._map is not None:
            self._map.close()
        self._map, self._size = larger, self._size + _CHUNK_BYTES

    def _write(self, record: bytes) -> None:
        """The first eight bytes come last: a reader takes a record that begins with zeros for
        one that is not there yet."""
        pages, start, end = self._map, self._end, self._end + len(record)
        assert pages is not None
        pages[start + 8 : end] = record[8:]
        pages[start : start + 8] = record[:8]
        self._end = end

    def _give_up(self) -> None:
        fd, self._fd = self._fd, -1
        pages, self._map = self._map, None
        if pages is not None:
            pages.close()
        if fd >= 0:
            with contextlib.suppress(OSError):
                os.close(fd)


class WorkerFile(NamedTuple):
    """One worker's records. `resumed` counts how often a persistent worker was reset."""

    info: WorkerInfo
    fetches: list[tuple[int, Fetch]]  # (resumed, fetch)


def read_worker_files(folder: str) -> Iterator[WorkerFile]:
    """Every readable record file of `folder`; a torn last record is left out."""
    for path in sorted(Path(folder).glob("worker-*.rec")):
        with contextlib.suppress(OSError, struct.error):
            parsed = _parse(path.read_bytes())
            if parsed is not None:
                yield parsed


def _parse(raw: bytes) -> WorkerFile | None:
    if len(raw) < _HEADER.size or not raw.startswith(_MAGIC):
        return None
    _, pid, tid, worker, loader, epoch, created_ns, entered_ns = _HEADER.unpack_from(raw)
    left_ns, lost, fetches = -1, 0, []
    for offset in range(_HEADER.size, len(raw) - _FETCH.size + 1, _FETCH.size):
        if raw[offset : offset + 8] == bytes(8):
            break  # room that was never used
        if raw[offset : offset + len(_END)] == _END:
            _, left_ns, lost = _FOOTER.unpack_from(raw, offset)
            continue
        fetches.append(_fetch(_FETCH.unpack_from(raw, offset), worker, pid, loader, epoch))
    info = WorkerInfo(worker, loader, epoch, pid, tid, created_ns, entered_ns, left_ns, lost)
    return WorkerFile(info, fetches)


def _fetch(
    row: tuple[int, ...], worker: int, pid: int, loader: int, epoch: int
) -> tuple[int, Fetch]:
    (
        start,
        end,
        collate,
        cpu,
        task,
        resumed,
        samples,
        minor,
        major,
        vol,
        invol,
        read,
        tensors,
        size,
        digest,
    ) = row
    return resumed, Fetch(
        worker=worker,
        pid=pid,
        loader=loader,
        epoch=epoch,
        task=task,
        start_ns=start,
        end_ns=end,
        collate_ns=collate,
        cpu_ns=cpu,
        samples=samples,
        major_faults=major,
        minor_faults=minor,
        voluntary_switches=vol,
        involuntary_switches=invol,
        read_blocks=read,
        tensors=tensors,
        batch_bytes=size,
        digest=digest,
    )
