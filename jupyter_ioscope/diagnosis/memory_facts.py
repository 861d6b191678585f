"""How much memory workers copied from their parent, and how much waits in queues."""

from __future__ import annotations

from bisect import bisect_right
from statistics import median_low
from typing import NamedTuple

from jupyter_ioscope.diagnosis.phases import Interval, union
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.observed import ProcessUse
from jupyter_ioscope.model.profile import Machine, Profile
from jupyter_ioscope.model.records import Fetch

PAGE_BYTES = 4096  # the page that a fault takes on Linux; larger pages are counted by the fault too
# What a forked worker with torch copies in any case, its interpreter's own objects: measured 12 to
# 17 MB.
USUAL_COPY_BYTES = 16_000_000
# A full garbage collection in a worker writes to every container it inherited, in the middle of one
# fetch: what a notebook has imported is copied then, whatever the dataset is. Measured 50 MB in a
# kernel with torch and datasets; with gc.freeze() before the fork it is gone.
COLLECTION_BYTES = 64_000_000
# With fewer fetches, one that copies far more than the others says little.
LEAST_FETCHES = 8


class Copied(NamedTuple):
    """Pages that workers copied from their parent, of one life of each worker.

    `bytes` is beyond what any forked worker copies; `while_fetching` says that the faults of the
    fetches account for it; `private_bytes` is all memory that is the workers' own;
    `collected_bytes` is what runs of the garbage collector copied, which is not in `bytes`.
    """

    bytes: int
    workers: int
    private_bytes: int
    while_fetching: bool
    collected_bytes: int = 0


def memory_budget_bytes(machine: Machine) -> int:
    """Memory that may be used: the cgroup's limit, else the machine's; 0 where unknown."""
    known = [size for size in (machine.memory_bytes, machine.memory_limit_bytes) if size > 0]
    return min(known, default=0)


def faults_of_workers(profile: Profile) -> dict[int, int]:
    """Process id of a worker -> pages that its fetches took without waiting for a disk."""
    faults: dict[int, int] = {}
    for row in profile.fetches:
        if row.worker >= 0:
            faults[row.pid] = faults.get(row.pid, 0) + row.minor_faults
    return faults


def tree_growth_bytes(profile: Profile) -> float | None:
    """How far the memory of all processes rose above its first reading; None without a second."""
    series = profile.series.get("tree_rss_bytes")
    if series is None or len(series.values) < 2:
        return None
    return series.peak() - series.values[0]


def copied_by_workers(profile: Profile) -> Copied:
    """What workers copied by writing to pages they shared with their parent since the fork.

    A copied page is private, but it is no new one: private memory less the growth of anonymous
    memory. Where a fetch's faults are about as many as those pages, they were copied while items
    were read; faults of buffers that come and go are far more.

    What fetches took in which the collector is known to have run is the collector's. Where no run
    was noted, what one fetch alone took is, up to `COLLECTION_BYTES`.

    Raises NotMeasuredError where the private memory of workers is not known.
    """
    faults = faults_of_workers(profile)
    bursts, collections = _bursts(profile), _collections(profile)
    lives: dict[int, tuple[int, int, bool, int]] = {}
    for use in profile.processes:
        if use.worker >= 0 and use.last_private_bytes >= 0:
            collected = collections.get(use.pid, 0) * PAGE_BYTES
            burst = collected or min(bursts.get(use.pid, 0) * PAGE_BYTES, COLLECTION_BYTES)
            found = *_copied_by(use, faults.get(use.pid, 0) * PAGE_BYTES, burst), collected
            lives[use.worker] = max(lives.get(use.worker, found), found)
    if not lives:
        raise NotMeasuredError("private memory of the workers", "no worker's could be read")
    return Copied(
        sum(copied for copied, *_ in lives.values()),
        len(lives),
        sum(private for _, private, *_ in lives.values()),
        all(fetching for _, _, fetching, _ in lives.values()),
        sum(min(collected, private) for _, private, _, collected in lives.values()),
    )


def _bursts(profile: Profile) -> dict[int, int]:
    """Process id of a worker -> pages that one fetch took beyond what its fetches usually take."""
    rows: dict[int, list[int]] = {}
    for row in profile.fetches:
        if row.worker >= 0:
            rows.setdefault(row.pid, []).append(row.minor_faults)
    return {
        pid: max(taken) - median_low(taken)
        for pid, taken in rows.items()
        if len(taken) >= LEAST_FETCHES
    }


def _collections(profile: Profile) -> dict[int, int]:
    """Process id of a worker -> pages that fetches with a run of the garbage collector took, where
    they took more than twice as many as fetches usually do."""
    rows: dict[int, list[Fetch]] = {}
    for row in profile.fetches:
        if row.worker >= 0:
            rows.setdefault(row.pid, []).append(row)
    pauses: dict[int, list[Interval]] = {}
    for pause in profile.gc_pauses:
        pauses.setdefault(pause.pid, []).append((pause.start_ns, pause.end_ns))
    found: dict[int, int] = {}
    for pid, spans in pauses.items():
        fetches = rows.get(pid, [])
        if len(fetches) < LEAST_FETCHES:
            continue
        usual = median_low([row.minor_faults for row in fetches])
        runs = union(spans)
        ends = [end for _, end in runs]
        extra = [
            row.minor_faults - usual
            for row in fetches
            if row.minor_faults > 2 * usual and _meets(row, runs, ends)
        ]
        if extra:
            found[pid] = sum(extra)
    return found


def _meets(row: Fetch, runs: list[Interval], ends: list[int]) -> bool:
    """Whether one of the stretches, in order and apart, lies in a fetch; `ends` are theirs."""
    first = bisect_right(ends, row.start_ns)
    return first < len(runs) and runs[first][0] < row.end_ns


def _copied_by(use: ProcessUse, fault_bytes: int, burst_bytes: int) -> tuple[int, int, bool]:
    """(copied beyond the usual, private, whether faults of fetches account for it)."""
    private = use.last_private_bytes
    new = 0
    if use.first_anonymous_bytes >= 0 and use.last_anonymous_bytes >= 0:
        new = max(0, use.last_anonymous_bytes - use.first_anonymous_bytes)
    copied = max(0, private - new)
    if 0 < fault_bytes <= 1.25 * copied:
        return max(0, min(copied, fault_bytes) - burst_bytes), private, True
    return max(0, copied - USUAL_COPY_BYTES - burst_bytes), private, False
