"""A pool of threads with pread against io_uring, past the page cache, at the same queue depths."""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from jupyter_ioscope.benches._bench import Arm, Bench, Found, Missing, Pass, Prepared
from jupyter_ioscope.benches._ring import Ring, conditions, timed_reads, why
from jupyter_ioscope.benches._targets import file_of
from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model.bench import BenchTable
from jupyter_ioscope.storage import filesystems, page_cache
from jupyter_ioscope.storage.doubt import percentile
from jupyter_ioscope.storage.own_engine import (
    SMALL,
    at_depth,
    buffer_of,
    drawn,
    opened,
    reader,
)
from jupyter_ioscope.units import rate, seconds

THREADS, RING = "threads with pread", "io_uring"
DEPTHS = (1, 4, 16, 64)
_TAKES = "the path of a file of your data set, of 4 MiB or more"
_LEAST = 4 << 20
_PASS_S = 0.15
_DRAWN = 32_768  # offsets a pass, of all threads together


def prepare(target: Any, folder: str, depths: Sequence[int] = DEPTHS) -> Prepared:
    path, size = file_of(target, _TAKES, _LEAST)
    found = filesystems.of_path(path)
    if found.family == "memory":
        raise InputError(
            f"{path!r} lies in memory ({found.name}): there is no device to ask; give a file on "
            "the storage that you mean"
        )
    file = opened(path, os.O_RDONLY)
    os.close(file.fd)
    refused = _refusal()
    groups = [(depth, f"depth {depth}") for depth in depths]
    arms = [
        Arm(THREADS, functools.partial(open_threads, path, size, depth), 1, group=group,
            warm=False, note="one thread" if depth == 1 else f"{depth} threads")
        for depth, group in groups
    ]  # fmt: skip
    missing = []
    for depth, group in groups:
        if refused:
            missing.append(Missing(RING, refused, group))
            continue
        arms.append(
            Arm(RING, functools.partial(open_ring, path, size, depth), 1, group=group,
                look=functools.partial(_differs, path, size, depth), warm=False,
                note="one thread, system calls from Python")
        )  # fmt: skip
    arms.sort(key=lambda arm: [group for _, group in groups].index(arm.group))
    return Prepared(
        f"{path} ({found.name})",
        tuple(arms),
        tuple(missing),
        functools.partial(_tables, arms),
        functools.partial(_sentences, file.direct),
        _code,
    )


def open_threads(path: str, size: int, depth: int, pass_s: float = _PASS_S) -> Pass:
    """A pass of random reads of 4 KiB by `depth` threads."""

    def make(fd: int, number: int) -> tuple[Any, Iterable[int]]:
        if number == 0:
            _cold(fd)
        buffer = buffer_of(SMALL)
        return reader(fd, buffer), drawn(size, SMALL, random.getrandbits(32), _DRAWN // depth)

    def once() -> Mapping[str, float]:
        return _told(*at_depth(path, os.O_RDONLY, make, depth, pass_s))

    return once


def open_ring(path: str, size: int, depth: int, pass_s: float = _PASS_S) -> Pass:
    """The same by one thread that keeps `depth` requests in an io_uring."""

    def once() -> Mapping[str, float]:
        fd = opened(path, os.O_RDONLY).fd
        try:
            _cold(fd)
            offsets = drawn(size, SMALL, random.getrandbits(32), _DRAWN)
            return _told(*timed_reads(fd, SMALL, offsets, depth, pass_s))
        finally:
            os.close(fd)

    return once


def _told(took: list[int], wall_s: float) -> dict[str, float]:
    ordered = sorted(took)
    return {
        "seconds": wall_s,
        "items": len(ordered),
        "p50": percentile(ordered, 0.5) / 1e9,
        "p99": percentile(ordered, 0.99) / 1e9,
    }


def _cold(fd: int) -> None:
    """Where O_DIRECT is not to be had: nothing in the page cache, and nothing read ahead."""
    page_cache.evict(fd)
    with suppress(OSError, AttributeError):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)


def _refusal() -> str:
    try:
        Ring(4).close()
    except OSError as error:
        return why(error)
    return ""


def _differs(path: str, size: int, depth: int) -> list[str]:
    """One read of each ring slot against pread of the same place."""
    draw = random.Random(depth)
    places = [draw.randrange(size // SMALL) * SMALL for _ in range(depth)]
    fd = opened(path, os.O_RDONLY).fd
    try:
        ring = Ring(depth, fd, SMALL)
        for slot, at in enumerate(places):
            ring.push(slot, at)
        done: set[int] = set()
        ring.enter(depth, depth)
        done.update(ring.completed())
        wrong = []
        with buffer_of(SMALL) as buffer:
            for slot, at in enumerate(places):
                count = os.preadv(fd, [buffer], at)
                if slot not in done or ring.read(slot)[:count] != buffer[:count]:
                    wrong.append(f"other bytes than pread() gives at {at:,}")
        ring.close()
    finally:
        os.close(fd)
    return wrong[:3]


def _tables(arms: Sequence[Arm], found: Found) -> list[BenchTable]:
    rows = [
        (arm.group.removeprefix("depth "), arm.name, rate(1 / row.seconds_per_item, "requests"),
         seconds(row.own["p50"]), seconds(row.own["p99"]))
        for arm in arms if (row := found.get(arm.key)) is not None
    ]  # fmt: skip
    head = ("depth", "engine", "requests", "median", "99 %")
    return [
        BenchTable("Random reads of 4 KiB: latency", (head, *rows)),
        BenchTable("Whether io_uring may be used here", (("", "value"), *conditions())),
    ]


def _sentences(direct: bool, _found: Found) -> list[str]:
    how = "O_DIRECT: past the page cache" if direct else (
        "This file system takes no O_DIRECT: the file was evicted before each pass, and places "
        "read twice in a pass may come from the page cache"
    )  # fmt: skip
    return [
        f"{how}. Both engines are driven from Python and share its costs.",
        "kernel.io_uring_disabled: 0 allows io_uring to all, 1 only to members of "
        "kernel.io_uring_group and to CAP_SYS_ADMIN, 2 to nobody (Linux 6.6 and newer). Docker's "
        "default seccomp profile forbids it since version 25.",
    ]


def _code(arm: Arm) -> str:
    if arm.name == RING:
        return "# io_uring from Python: pip install liburing"
    return ""


BENCH = Bench("engines", "Threads against io_uring", _TAKES, "request", prepare)
