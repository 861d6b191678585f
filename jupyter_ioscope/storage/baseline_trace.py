"""A baseline's jobs once more, with a trace of what reaches the device: its own latencies.

Runs of their own, so that tracing changes nothing about those that are compared with fio's numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jupyter_ioscope.block_trace import tracefs
from jupyter_ioscope.block_trace.events import Event, Lines
from jupyter_ioscope.block_trace.requests import Requests
from jupyter_ioscope.errors import InputError
from jupyter_ioscope.storage import fio

WHAT = "latency of the device itself"
MOST_ROUNDS = 3
LONGEST_S = 1.0  # of a traced run: nobody reads meanwhile, so that all of it has to fit
_BUFFER_KIB = 64 << 10  # of all CPUs together: 900,000 events of 70 bytes
SUFFIX = " (device)"  # of an engine's name, for what the device took of its requests
# fio's threads, and those that io_uring makes for it.
_FIO = ("fio", "iou-")
# Runs a job: the thread ids that made its requests, where they are known.
Runner = Callable[[fio.Job, float], set[int]]


def rounds(repeats: int) -> int:
    """How often each job is traced."""
    return min(MOST_ROUNDS, repeats)


def traced(
    jobs: Sequence[fio.Job], run: Runner, seconds: float, repeats: int
) -> Iterator[dict[str, Any]]:
    """Run every job alone while tracing; a row for the parent process each.

    A row has `run`, a `fio.Run` whose bandwidth is 0 (the trace knows only latencies), or `missing`
    with a reason. The trace counts the job's own requests only, not those of other programs.
    """
    try:
        folder = tracefs.find()
        for _ in range(rounds(repeats)):
            for job in jobs:
                yield _row(folder, job, run, min(seconds, LONGEST_S))
    except (tracefs.NotHereError, OSError) as error:
        yield {"missing": f"{WHAT}: {error}"}


def _row(folder: str, job: fio.Job, run: Runner, seconds: float) -> dict[str, Any]:
    instance = tracefs.Instance(folder, _BUFFER_KIB, keep_first=True)
    try:
        try:
            tids = run(job, seconds)
        except InputError as error:
            return {"missing": f"{WHAT}, {job.pattern} with {job.engine}: {error}"}
        instance.stop()
        found, lost = _requests(instance, job, tids), instance.lost()
    finally:
        instance.close()
    if found is None:
        return {
            "missing": f"{WHAT}: no request of {job.pattern} with {job.engine} was seen there as "
            "its own (the page cache or a thread of the kernel stands between, or this container "
            "counts processes otherwise)"
        }
    labelled = job._replace(engine=job.engine + SUFFIX)
    p50_s, p99_s = found["device_p50_us"] / 1e6, found["device_p99_us"] / 1e6
    row: dict[str, Any] = {"run": [list(labelled), 0.0, 0.0, p50_s, p99_s]}
    if lost:
        row["missing"] = (
            f"{WHAT}: of {job.pattern} with {job.engine} the first {found['requests']:,} requests "
            "only, then the trace's buffer was full"
        )
    return row


def _requests(instance: tracefs.Instance, job: fio.Job, tids: set[int]) -> dict[str, Any] | None:
    """The device that got most of a job's requests; None where it saw none."""

    def own(event: Event) -> bool:
        return event.tid in tids or (not tids and event.name.startswith(_FIO))

    requests, lines = Requests(own), Lines()
    while piece := instance.read():
        requests.add(lines.events(piece))
    operation = "read" if job.pattern.endswith("read") else "write"
    rows = [row for row in requests.summary()["totals"] if row["operation"] == operation]
    return max(rows, key=lambda row: row["requests"], default=None)
