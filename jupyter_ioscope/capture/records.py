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

# End, collate, CPU, task, resume count, samples, four rusage deltas, read blocks, objects, bytes,
# those of them in doubles, digest, and the start. The start comes last: it is written last, and
# where it is still zero, a reader knows that the record is not whole.
_FETCH = struct.Struct("<qqqiiiiiiiqiqqqq")
# Of a short fetch: minus its end (which tells the two apart), collate start, task, samples, start.
_SHORT = struct.Struct("<qqiiq")
_HEADER = struct.Struct("<8siiiiiqq")
_FOOTER = struct.Struct("<8sqq")
_START = struct.Struct("<q")
_MAGIC = b"iosc-rec"
_END = b"iosc-end"
_WHO = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)
_clock_ns, _thread_ns, _rusage = time.monotonic_ns, time.thread_time_ns, resource.getrusage

# The size of a batch is looked at for the first fetches of a worker and then now and then:
# walking a batch of many objects costs more than everything else in a record.
_SIZE_ALWAYS = 8
_SIZE_EVERY = 16
_SIZE_APART = 100  # so many times as long as a look took, none follows: it costs 1 % at most
_MAX_OBJECTS = 5_000
# Room for 170 records, then for as many again each time: a worker that lives shortly does not pay
# for more.
_LEAST_BYTES, _MOST_BYTES = 1 << 14, 1 << 18


# Readings of the calling thread at one instant: clock and CPU time in nanoseconds, and faults,
# switches and blocks read as the system counts them. A plain tuple: making one is the cheapest.
Usage = tuple[int, int, resource.struct_rusage]


class BatchSize(NamedTuple):
    """What travels on its own, its bytes, and those of them in numbers of 64-bit floating point."""

    objects: int
    bytes: int
    double_bytes: int = 0


def usage() -> Usage:
    """Clock, CPU time, faults and switches of the calling thread (1.2 µs; 2 to 3 in a loop that
    does other things, because two of them are system calls)."""
    return _clock_ns(), _thread_ns(), _rusage(_WHO)


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
    size: BatchSize,
    digest: int = 0,
) -> Fetch:
    """The record of a fetch from the readings at its two ends."""
    start_ns, start_cpu_ns, before = start
    end_ns, end_cpu_ns, after = end
    return Fetch(
        worker=worker,
        pid=pid,
        loader=loader,
        epoch=epoch,
        task=task,
        start_ns=start_ns,
        end_ns=end_ns,
        collate_ns=end_ns - collate_start_ns if collate_start_ns else 0,
        cpu_ns=end_cpu_ns - start_cpu_ns,
        samples=samples,
        major_faults=after.ru_majflt - before.ru_majflt,
        minor_faults=after.ru_minflt - before.ru_minflt,
        voluntary_switches=after.ru_nvcsw - before.ru_nvcsw,
        involuntary_switches=after.ru_nivcsw - before.ru_nivcsw,
        read_blocks=after.ru_inblock - before.ru_inblock,
        tensors=size.objects,
        batch_bytes=size.bytes,
        digest=digest,
        double_bytes=size.double_bytes,
    )


def batch_size_of(data: Any) -> BatchSize:
    """The size of a batch.

    Counted: tensors, arrays, strings, bytes and numbers inside lists, tuples and dicts. A batch
    with more than 5,000 of them is cut off there: the count is then a lower bound.
    """
    objects = size = doubles = 0
    todo: list[Any] = [data]
    while todo and objects < _MAX_OBJECTS:
        item = todo.pop()
        if isinstance(item, dict):
            todo.extend(item.values())
        elif isinstance(item, (list, tuple)):
            todo.extend(item[: _MAX_OBJECTS - objects])
        else:
            objects += 1
            own = _bytes_of(item)
            size += own
            if own and str(getattr(item, "dtype", "")).endswith("float64"):
                doubles += own
    return BatchSize(objects, size, doubles)


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
        self._last = BatchSize(0, 0)
        self._not_before_ns = 0

    def __call__(self, data: Any) -> BatchSize:
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

    Records are packed straight into mapped pages, because a system call would let go of the GIL in
    the middle of the worker's loop. The pages are written as zeros before they are mapped: so a
    full disk gives an error here, where it can be handled, and never a bus error later.
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
        size: BatchSize,
        digest: int = 0,
    ) -> None:
        """Append the record of a fetch between two readings."""
        at, pages = self._end, self._map
        if at + _FETCH.size > self._size:
            pages = self._room_for(_FETCH.size)
        if pages is None:
            return
        start_ns, start_cpu_ns, before = start
        end_ns, end_cpu_ns, after = end
        _FETCH.pack_into(
            pages,
            at,
            end_ns,
            end_ns - collate_start_ns if collate_start_ns else 0,
            end_cpu_ns - start_cpu_ns,
            task,
            resumed,
            samples,
            after.ru_minflt - before.ru_minflt,
            after.ru_majflt - before.ru_majflt,
            after.ru_nvcsw - before.ru_nvcsw,
            after.ru_nivcsw - before.ru_nivcsw,
            after.ru_inblock - before.ru_inblock,
            size.objects,
            size.bytes,
            size.double_bytes,
            digest,
            start_ns,
        )
        self._end = at + _FETCH.size

    def short_fetch(
        self, start_ns: int, end_ns: int, collate_start_ns: int, task: int, samples: int
    ) -> None:
        """Append a fetch of which only the clock was read. For whoever reads the file it used CPU
        as the one before did that was read in full, in proportion to its time, and met as many
        faults and switches. So sums over many fetches are right.
        """
        at, pages = self._end, self._map
        if at + _SHORT.size > self._size:
            pages = self._room_for(_SHORT.size)
        if pages is None:
            return
        _SHORT.pack_into(pages, at, -end_ns, collate_start_ns, task, samples, start_ns)
        self._end = at + _SHORT.size

    def close(self) -> None:
        """Note the worker's end. Padded to the record length, so that a reader can step."""
        if self._room_for(_FETCH.size):
            now_ns = time.monotonic_ns()
            footer = _FOOTER.pack(_END, now_ns, self.lost).ljust(_FETCH.size - _START.size, b"\0")
            self._write(footer + _START.pack(now_ns))
        self._give_up()

    def _room_for(self, size: int) -> mmap.mmap | None:
        """The pages, if `size` more bytes fit, after growing the file if they must; counts what is
        lost."""
        if self._end + size > self._size and self._fd >= 0:
            try:
                self._grow()
            except (OSError, ValueError):
                self.lost += 1
                return None
        return self._map

    def _grow(self) -> None:
        if self._size and os.fstat(self._fd).st_nlink == 0:
            self._give_up()  # the profile is over and its folder gone; the worker lives on
            return
        more = min(max(self._size, _LEAST_BYTES), _MOST_BYTES)
        if os.pwrite(self._fd, bytes(more), self._size) != more:
            raise OSError("the disk is full")
        larger = mmap.mmap(self._fd, self._size + more)
        if self._map is not None:
            self._map.close()
        self._map, self._size = larger, self._size + more

    def _write(self, record: bytes) -> None:
        assert self._map is not None
        self._map[self._end : self._end + len(record)] = record
        self._end += len(record)

    def _give_up(self) -> None:
        fd, self._fd = self._fd, -1
        pages, self._map, self._size = self._map, None, 0
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
    before: tuple[int, Fetch] | None = None
    offset = _HEADER.size
    while offset + _SHORT.size <= len(raw):
        kind = _SHORT if raw[offset + 7] & 0x80 else _FETCH
        at, offset = offset, offset + kind.size
        if offset > len(raw) or not any(raw[offset - _START.size : offset]):
            break  # room that was never used, or a record that was not finished
        if kind is _SHORT:
            if before is not None:
                fetches.append(_short_fetch(_SHORT.unpack_from(raw, at), before))
        elif raw[at : at + len(_END)] == _END:
            _, left_ns, lost = _FOOTER.unpack_from(raw, at)
        else:
            before = _fetch(_FETCH.unpack_from(raw, at), worker, pid, loader, epoch)
            fetches.append(before)
    info = WorkerInfo(worker, loader, epoch, pid, tid, created_ns, entered_ns, left_ns, lost)
    return WorkerFile(info, fetches)


def _short_fetch(row: tuple[int, ...], before: tuple[int, Fetch]) -> tuple[int, Fetch]:
    """A fetch by its times, and by the one `before` it that was read in full."""
    minus_end_ns, collate_start_ns, task, samples, start_ns = row
    resumed, like = before
    end_ns = -minus_end_ns
    cpu_ns = like.cpu_ns * (end_ns - start_ns) // max(1, like.fetch_ns)
    collate_ns = end_ns - collate_start_ns if collate_start_ns else 0
    return resumed, like._replace(
        task=task,
        start_ns=start_ns,
        end_ns=end_ns,
        collate_ns=collate_ns,
        cpu_ns=cpu_ns,
        samples=samples,
        digest=0,
    )


def _fetch(
    row: tuple[int, ...], worker: int, pid: int, loader: int, epoch: int
) -> tuple[int, Fetch]:
    (
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
        doubles,
        digest,
        start,
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
        double_bytes=doubles,
    )
