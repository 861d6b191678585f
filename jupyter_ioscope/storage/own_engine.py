"""Requests on a file, timed one by one: what the health check and baselines without fio use.

Buffers are anonymous maps, which begin at a page, as O_DIRECT wants (open(2)). Latencies are kept
as they come and looked at when the clock has stopped.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import mmap
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from jupyter_ioscope.model.storage import Timing
from jupyter_ioscope.storage.doubt import bandwidth_range, percentile, percentile_range

NAME = "ioscope's own engine"
SMALL, LARGE = 4096, 1 << 20
_DIRECT = getattr(os, "O_DIRECT", 0)
# Standing in line for so long is no part of waking up from a request, which every request has.
_IN_LINE_NS = 100_000
_REFUSALS = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)


class Opened(NamedTuple):
    """A file descriptor, and whether its requests go past the page cache."""

    fd: int
    direct: bool


def opened(path: str, flags: int) -> Opened:
    """Open with O_DIRECT where the file system takes it, as a request shows; else without.

    Raises:
        OSError: as `open` does.
    """
    if flags & os.O_EXCL:
        # Where O_DIRECT is refused, the file is made all the same (tmpfs before Linux 6.6, ramfs).
        os.close(os.open(path, flags | os.O_CLOEXEC, 0o600))
        flags &= ~(os.O_CREAT | os.O_EXCL)
    if _DIRECT:
        with contextlib.suppress(OSError):
            fd = os.open(path, flags | _DIRECT | os.O_CLOEXEC, 0o600)
            if _takes_direct(fd, flags):
                return Opened(fd, True)
            os.close(fd)
    return Opened(os.open(path, flags | os.O_CLOEXEC, 0o600), False)


def _takes_direct(fd: int, flags: int) -> bool:
    """Some file systems refuse only when it comes to reading."""
    if flags & os.O_WRONLY:
        return True
    with mmap.mmap(-1, SMALL) as buffer:
        try:
            os.preadv(fd, [buffer], 0)
        except OSError as error:
            return error.errno not in _REFUSALS
    return True


def buffer_of(size: int, random_bytes: bool = False) -> mmap.mmap:
    """A buffer at a page's beginning; random bytes, so that nothing compresses what is written."""
    made = mmap.mmap(-1, size)
    if random_bytes:
        for at in range(0, size, SMALL):
            made[at : at + SMALL] = random.randbytes(min(SMALL, size - at))
    return made


def sequential(size: int, block: int, again: bool = False) -> Iterator[int]:
    """Offsets from the beginning to the end, whole blocks only, then from the beginning again."""
    while True:
        yield from range(0, max(1, size - block + 1), block)
        if not again:
            return


def scattered(size: int, block: int, seed: int, again: bool = False) -> Iterator[int]:
    """Offsets of whole blocks in random order: none twice, before all were had.

    A shuffle that goes only as far as it is asked (Fisher and Yates, with a table of what was
    moved): the first offset of a large file costs no more than the next.
    """
    draw = random.Random(seed).random
    blocks = max(1, size // block)
    while True:
        moved: dict[int, int] = {}
        for at in range(blocks):
            other = at + int(draw() * (blocks - at))
            yield moved.get(other, other) * block
            moved[other] = moved.pop(at, at)
        if not again:
            return


def drawn(size: int, block: int, seed: int, count: int) -> Iterator[int]:
    """The first `count` offsets of `scattered`, then the same again, drawn before the clock starts:
    at depth, drawing them takes as long as Python's part of a request."""
    offsets = scattered(size, block, seed)
    return itertools.cycle(list(itertools.islice(offsets, count)))


class Line:
    """How long this thread has stood in line for a core: schedstat of the kernel
    (Documentation/scheduler/sched-stats.rst). `taken_ns` is what `timed` took off so far."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.taken_ns = 0

    def stood_ns(self) -> int:
        """In all, in nanoseconds; 0 where the kernel does not count it."""
        return int(os.pread(self._fd, 64, 0).split()[1]) if self._fd >= 0 else 0


@contextlib.contextmanager
def line_for_a_core() -> Iterator[Line]:
    """The line of the calling thread."""
    fd = -1
    with contextlib.suppress(OSError):
        fd = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield Line(fd)
    finally:
        if fd >= 0:
            os.close(fd)


def timed(
    request: Callable[[int], object],
    arguments: Iterable[int],
    seconds: float,
    line: Line | None = None,
) -> list[int]:
    """Call `request` with one argument after the other until the time is over; nanoseconds each.

    The first request always runs to its end. With a `line`, a longer while in it is no part of a
    request.
    """
    if line is not None:
        return _timed_in_line(request, arguments, seconds, line)
    clock = time.perf_counter_ns
    took: list[int] = []
    keep = took.append
    until = clock() + int(seconds * 1e9)
    for argument in arguments:
        before = clock()
        request(argument)
        after = clock()
        keep(after - before)
        if after >= until:
            break
    return took


def _timed_in_line(
    request: Callable[[int], object], arguments: Iterable[int], seconds: float, line: Line
) -> list[int]:
    clock = time.perf_counter_ns
    took: list[int] = []
    until = clock() + int(seconds * 1e9)
    for argument in arguments:
        stood = line.stood_ns()
        before = clock()
        request(argument)
        after = clock()
        spent = after - before
        if (stood := line.stood_ns() - stood) >= _IN_LINE_NS:
            stood = min(stood, spent)
            line.taken_ns += stood
            spent -= stood
        took.append(spent)
        if after >= until:
            break
    return took


def reader(fd: int, buffer: mmap.mmap) -> Callable[[int], int]:
    """A request that reads a buffer full at an offset."""
    into = [buffer]
    return lambda offset: os.preadv(fd, into, offset)


def writer(fd: int, buffer: mmap.mmap) -> Callable[[int], int]:
    """A request that writes the buffer at an offset."""
    out = [buffer]
    return lambda offset: os.pwritev(fd, out, offset)


def timing(
    name: str,
    took_ns: list[int],
    request_bytes: int = 0,
    more_s: float = 0.0,
    queued_s: float = 0.0,
) -> Timing:
    """A summary of requests in the order in which they were timed; `more_s` is what belongs to no
    single one (fsync), `queued_s` what they stood in line for a core."""
    ordered = sorted(took_ns)
    seconds = sum(ordered) / 1e9 + more_s
    moved = request_bytes * len(ordered)
    return Timing(
        name=name,
        requests=len(ordered),
        request_bytes=request_bytes,
        seconds=seconds,
        bytes_per_s=moved / seconds if seconds > 0 else 0.0,
        p50_s=percentile(ordered, 0.5) / 1e9,
        p99_s=percentile(ordered, 0.99) / 1e9,
        worst_s=ordered[-1] / 1e9 if ordered else 0.0,
        queued_s=queued_s,
        p50_range_s=percentile_range(took_ns, 0.5),
        p99_range_s=percentile_range(took_ns, 0.99),
        bytes_per_s_range=bandwidth_range(took_ns, request_bytes, more_s)
        if took_ns
        else (0.0, 0.0),
    )


# (descriptor, number of the thread) -> (its request, its offsets)
Make = Callable[[int, int], tuple[Callable[[int], object], Iterable[int]]]


def at_depth(
    path: str, flags: int, make: Make, depth: int, seconds: float
) -> tuple[list[int], float]:
    """Run `depth` threads at a time, each with a descriptor of its own: (latencies, wall seconds).

    The clock starts when all of them are ready. System calls let go of the GIL.

    Raises:
        OSError: as the requests do.
    """
    results: list[list[int]] = []
    problems: list[BaseException] = []
    began_s = [0.0]

    def start() -> None:
        began_s[0] = time.perf_counter()

    ready = threading.Barrier(depth, start)

    def run(number: int) -> None:
        try:
            fd = opened(path, flags).fd
            try:
                request, offsets = make(fd, number)
                ready.wait()
                results.append(timed(request, offsets, seconds))
            finally:
                os.close(fd)
        except threading.BrokenBarrierError:
            return  # another thread failed
        except BaseException as error:
            problems.append(error)
            ready.abort()  # those that wait for it would wait for ever

    threads = [threading.Thread(target=run, args=(number,)) for number in range(depth)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall_s = time.perf_counter() - began_s[0]
    if problems:
        raise problems[0]
    return [value for took in results for value in took], wall_s
