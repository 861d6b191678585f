"""Our own engines against fio, on one file and in turns: reads past the page cache.

- the health check's sequential read (1 MiB, one at a time) as bandwidth, and its random 4 KiB read
  as median latency, against fio's psync engine with direct=1;
- the two engines of the bench `engines` (threads with pread, io_uring from Python) as requests a
  second, against fio with as many threads (psync) or as many requests under way (io_uring).

A ratio compares two runs of the same length that follow each other; the order changes every round.
"""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyter_ioscope.benches.engines import open_ring, open_threads
from jupyter_ioscope.storage import fio
from jupyter_ioscope.storage.health import check
from jupyter_ioscope.storage.measure import QUICK
from tests.bench.measure import print_result, ratio_interval

SIZE = QUICK.read_bytes
ROUNDS, QUICK_ROUNDS = 16, 6
DEPTHS = (1, 4, 16)
RUN_S = 0.4

Run = Callable[[], float]


def measure(quick: bool) -> dict[str, Any]:
    tool = fio.found()
    if tool is None:
        return {"skipped": "fio is not installed"}
    rounds = QUICK_ROUNDS if quick else ROUNDS
    with contextlib.suppress(PermissionError):
        os.nice(-19)  # for fio as well: what other programs compute is not what is compared
    with tempfile.TemporaryDirectory(prefix="ioscope-fio-") as folder:
        file = os.path.join(folder, "data")
        lay_out(Path(file))
        result: dict[str, Any] = {"rounds": rounds, "health": health(tool, file, rounds)}
        result["engines"] = {
            f"{name}, depth {depth}": in_turns(
                functools.partial(by_fio, tool, file, engine, depth),
                functools.partial(by_bench, opener, file, depth),
                rounds,
            )
            for depth in DEPTHS
            for name, engine, opener in (
                ("threads", "psync", open_threads),
                ("io_uring", "io_uring", open_ring),
            )
        }
    return result


def lay_out(file: Path) -> None:
    with file.open("wb") as out:
        for _ in range(SIZE >> 20):
            out.write(os.urandom(1 << 20))
        out.flush()
        os.fsync(out.fileno())


def in_turns(fio_run: Run, own_run: Run, rounds: int) -> list[float]:
    """(ratio of ours to fio's, low, high)"""
    pairs = []
    for number in range(rounds):
        if number % 2:
            ours, theirs = own_run(), fio_run()
        else:
            theirs, ours = fio_run(), own_run()
        pairs.append((theirs, ours))
    return list(ratio_interval(pairs))


def health(tool: str, file: str, rounds: int) -> dict[str, list[float]]:
    """The two reads of one health check against one run of fio with both as jobs."""
    read: list[tuple[float, float]] = []
    random: list[tuple[float, float]] = []
    for number in range(rounds):
        if number % 2:
            ours, theirs = own_health(file), fio_health(tool, file)
        else:
            theirs, ours = fio_health(tool, file), own_health(file)
        read.append((theirs[0], ours[0]))
        random.append((theirs[1], ours[1]))
    return {"read": list(ratio_interval(read)), "random": list(ratio_interval(random))}


def own_health(file: str) -> tuple[float, float]:
    found = check(file)
    read, random = found.timing("sequential read"), found.timing("random read")
    assert read is not None
    assert random is not None
    # fio does not take off how long it stood in line for a core.
    moved = read.requests * read.request_bytes
    return moved / (read.seconds + read.queued_s), random.p50_s


def fio_health(tool: str, file: str) -> tuple[float, float]:
    jobs = (fio.Job("psync", "seqread", 1 << 20, 1), fio.Job("psync", "randread", 4096, 1))
    words = fio.command(tool, file, SIZE, jobs, RUN_S, True)
    read, random = fio.run(words, jobs, 30, os.path.dirname(file))
    return read.bytes_per_s, random.p50_s


def by_fio(tool: str, file: str, engine: str, depth: int) -> float:
    """Requests a second."""
    job = (fio.Job(engine, "randread", 4096, depth if engine == "io_uring" else 1),)
    words = fio.command(tool, file, SIZE, job, RUN_S, True)
    if engine == "psync":
        words = [word for word in words if word != "--group_reporting=0"]
        words += [f"--numjobs={depth}", "--group_reporting"]
    return fio.run(words, job, 30, os.path.dirname(file))[0].requests_per_s


def by_bench(opener: Callable[..., Any], file: str, depth: int) -> float:
    """Requests a second, by the pass that the bench itself times."""
    told = opener(file, SIZE, depth, RUN_S)()
    return float(told["items"] / told["seconds"])


if __name__ == "__main__":
    print_result(measure, __doc__)
