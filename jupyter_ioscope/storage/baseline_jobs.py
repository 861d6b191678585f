"""A baseline's jobs, run in a child process: with fio, or with our own engine."""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import threading
from collections.abc import Callable, Iterable
from typing import Any

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.storage import baseline_trace, fio, measure, page_cache
from jupyter_ioscope.storage.doubt import percentile
from jupyter_ioscope.storage.own_engine import (
    LARGE,
    at_depth,
    buffer_of,
    drawn,
    opened,
    reader,
    sequential,
    timed,
    writer,
)

_DRAWN = 65_536  # offsets of a run, of all threads together: 256 MiB of small blocks
OWN = "threads"  # our own engine: that many threads, each with one request at a time
# Our engine can be held up by a slow interpreter for a moment; fio starts and ends as well.
_SPARE_S = 20.0
_AS_LONG_AS_IT_TAKES_S = 1e6


def run(request: dict[str, Any], say: measure.Say) -> None:
    """Lay out one file, then run every job of the request on it, round after round.

    Raises:
        Refused, OSError: as `measure.check` does.
    """
    jobs = [fio.Job(*job) for job in request["jobs"]]
    plan = measure.QUICK._replace(write_bytes=int(request["size"]))
    hint = "give a folder that can be written to, or a smaller size"
    real, file_size = measure.folder_for(request["path"], plan, say, hint)
    if file_size:
        raise measure.Refused(f"{real!r} is a file: a baseline is measured in a folder")
    with measure.private_folder(real) as folder:
        say("folder", path=folder)
        name = os.path.join(folder, "large")
        say("lay out", doing="writing the file to be read")
        direct = _lay_out(name, plan.write_bytes)
        say("lay out", direct=direct)
        given_up: set[str] = set()
        for _ in range(int(request["repeats"])):
            for engine in dict.fromkeys(job.engine for job in jobs):
                own = [job for job in jobs if job.engine == engine]
                if engine not in given_up and not _round(name, request, own, direct, say):
                    given_up.add(engine)
        if request.get("block_trace"):
            _trace(name, request, [job for job in jobs if job.engine not in given_up], direct, say)
        say("clean up", doing="removing the private folder")
    say("clean up", done=True)


def _round(
    name: str, request: dict[str, Any], jobs: list[fio.Job], direct: bool, say: measure.Say
) -> bool:
    """One run of all jobs of one engine; False where the engine does not work here."""
    size, seconds, tool = int(request["size"]), float(request["seconds"]), request["fio"]
    engine = jobs[0].engine
    say("job", doing=f"running {engine}")
    _dropped(name)
    try:
        if engine == OWN:
            found = [_own(name, size, job, seconds) for job in jobs]
        else:
            words = fio.command(tool, name, size, jobs, seconds, direct)
            found = fio.run(
                words, jobs, len(jobs) * (seconds + 2) + _SPARE_S, os.path.dirname(name)
            )
    except InputError as error:
        say("job", missing=f"{engine}: {error}")
        return False
    for row in found:
        say("job", run=[list(row.job), *row[1:]])
    return True


def _trace(
    name: str, request: dict[str, Any], jobs: list[fio.Job], direct: bool, say: measure.Say
) -> None:
    """Every job alone, with a trace of the device."""
    size, tool = int(request["size"]), request["fio"]

    def run(job: fio.Job, seconds: float) -> set[int]:
        _dropped(name)
        tids: set[int] = set()
        if job.engine == OWN:
            _own(name, size, job, seconds, tids)
        else:
            words = fio.command(tool, name, size, [job], seconds, direct)
            fio.run(words, [job], seconds + 2 + _SPARE_S, os.path.dirname(name))
        return tids

    say("job", doing="tracing the device")
    seconds, repeats = float(request["seconds"]), int(request["repeats"])
    for row in baseline_trace.traced(jobs, run, seconds, repeats):
        say("job", **row)


def _lay_out(name: str, size: int) -> bool:
    file = opened(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    try:
        with buffer_of(LARGE, random_bytes=True) as buffer:
            timed(writer(file.fd, buffer), sequential(size, LARGE), _AS_LONG_AS_IT_TAKES_S)
        os.fsync(file.fd)
    finally:
        os.close(file.fd)
    return file.direct


def _own(
    name: str, size: int, job: fio.Job, seconds: float, tids: set[int] | None = None
) -> fio.Run:
    """One run with our own engine. `tids` gets the ids of the threads that made the requests."""
    block, reads = job.block_bytes, job.pattern.endswith("read")
    buffers: list[mmap.mmap] = []

    def make(fd: int, number: int) -> tuple[Callable[[int], object], Iterable[int]]:
        buffer = buffer_of(block, random_bytes=not reads)
        buffers.append(buffer)
        if tids is not None:
            tids.add(threading.get_native_id())
        if job.pattern.startswith("rand"):
            offsets = drawn(size, block, random.getrandbits(32), _DRAWN // job.depth)
        else:
            offsets = sequential(size, block, again=True)
        return (reader if reads else writer)(fd, buffer), offsets

    took, wall_s = at_depth(name, os.O_RDONLY if reads else os.O_RDWR, make, job.depth, seconds)
    for buffer in buffers:
        with contextlib.suppress(BufferError):
            buffer.close()
    ordered = sorted(took)
    return fio.Run(
        job,
        bytes_per_s=len(ordered) * block / wall_s,
        requests_per_s=len(ordered) / wall_s,
        p50_s=percentile(ordered, 0.5) / 1e9,
        p99_s=percentile(ordered, 0.99) / 1e9,
    )


def _dropped(name: str) -> None:
    fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        page_cache.evict(fd)
    finally:
        os.close(fd)
