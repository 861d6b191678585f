"""Where the workers' wall time went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from jupyter_ioscope.diagnosis.inside import (
    NO_PHASE,
    Seen,
    Span,
    blocked_parts,
    runs_of,
    seen_in,
    split_inside,
)
from jupyter_ioscope.diagnosis.parts import Parts, thread_waits
from jupyter_ioscope.diagnosis.same_loader import numbers_of_loaders
from jupyter_ioscope.diagnosis.spread import shares
from jupyter_ioscope.model.diagnosis import ThreadWaits
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, ThreadReadings
from jupyter_ioscope.model.records import Fetch, WorkerInfo


@dataclass
class _Process:
    """One worker process: what is known of it."""

    pid: int
    worker: int
    loader: int
    info: WorkerInfo | None = None
    reading: ThreadReadings | None = None
    fetches: list[Fetch] = field(default_factory=list)
    helpers: list[ThreadReadings] = field(default_factory=list)

    def life(self, profile: Profile) -> tuple[int, int]:
        """From entering its loop (else first reading or fetch) to leaving it (else the last)."""
        entered = self.info.entered_ns if self.info else -1
        left = self.info.left_ns if self.info else -1
        starts = [row.start_ns for row in self.fetches[:1]]
        ends = [row.end_ns for row in self.fetches[-1:]]
        if self.reading:
            starts.append(self.reading.first_ns)
            ends.append(self.reading.last_ns)
        begin = entered if entered >= 0 else min(starts, default=profile.start_ns)
        end = left if left >= 0 else max(ends, default=begin)
        begin = min(max(begin, profile.start_ns), profile.end_ns)
        return begin, max(begin, min(end, profile.end_ns))


def worker_waits(profile: Profile) -> tuple[ThreadWaits, ...]:
    """One row a worker. A worker that was started again each epoch is one row: its lives add up."""
    return tuple(_row(profile, processes) for processes in _rows(profile))


class Life(NamedTuple):
    """One life of a worker, from entering its loop to leaving it, with what is known of it."""

    begin_ns: int
    end_ns: int
    fetches: tuple[Fetch, ...]
    reading: ThreadReadings | None


def worker_lives(profile: Profile) -> list[list[Life]]:
    """The lives behind each row of `worker_waits`, in the same order."""
    return [
        [Life(*one.life(profile), tuple(one.fetches), one.reading) for one in processes]
        for processes in _rows(profile)
    ]


def _rows(profile: Profile) -> list[list[_Process]]:
    groups: dict[tuple[int, int], list[_Process]] = {}
    numbers = numbers_of_loaders(profile)
    for process in _processes(profile):
        loader = numbers.get(process.loader, process.loader)
        groups.setdefault((loader, process.worker), []).append(process)
    return [groups[key] for key in sorted(groups)]


def _processes(profile: Profile) -> list[_Process]:
    found: dict[int, _Process] = {}
    for info in profile.workers:
        found[info.pid] = _Process(info.pid, info.worker, info.loader, info)
    for reading in profile.threads:
        if reading.role == "worker" and reading.worker >= 0:
            process = found.setdefault(reading.pid, _Process(reading.pid, reading.worker, -1))
            if process.reading is None or reading.tid == reading.pid:
                process.reading = reading
    for fetch in profile.fetches:
        if fetch.worker >= 0:
            start = _Process(fetch.pid, fetch.worker, fetch.loader)
            found.setdefault(fetch.pid, start).fetches.append(fetch)
    for reading in profile.threads:
        if reading.role == "other" and reading.pid in found:
            found[reading.pid].helpers.append(reading)
    only = profile.loaders[0].loader if len(profile.loaders) == 1 else -1
    for process in found.values():
        process.fetches.sort(key=lambda row: row.start_ns)
        if process.loader < 0:
            process.loader = only
    return list(found.values())


def _row(profile: Profile, processes: Sequence[_Process]) -> ThreadWaits:
    recorded = [process for process in processes if process.fetches]
    silent = [process for process in processes if not process.fetches]
    parts = Parts()
    wall_ns = _with_records(profile, recorded, parts)
    for process in silent:
        wall_ns += _without_records(profile, process, parts)
    last = max(processes, key=lambda process: process.life(profile)[1])
    return thread_waits("worker", last.worker, last.pid, wall_ns, parts)


def _with_records(profile: Profile, processes: Sequence[_Process], parts: Parts) -> int:
    """Adds the parts of workers whose fetches are known; returns their wall time.

    Outside a fetch, CPU hands the batch over (pickling starts in this thread) and being blocked
    is idleness. What the sampler saw of some lives of this worker stands for all of them.
    """
    wall_ns = fetch_ns = cpu_ns = start_ns = 0
    seen: Seen | None = None
    for process in processes:
        begin, end = process.life(profile)
        spans = _spans(process.fetches, begin, end)
        wall_ns += end - begin
        fetch_ns += sum(span.wall_ns for span in spans)
        cpu_ns += sum(min(span.cpu_ns, span.wall_ns) for span in spans)
        first = spans[0].start_ns if spans else end
        start_ns += first - begin
        if process.reading is not None:
            seen = seen or Seen()
            seen.add(_observed(process, process.reading, spans, first, end))
    parts.add("start_up", start_ns)
    for name, (time_ns, error_ns) in split_inside(fetch_ns, cpu_ns, seen).items():
        parts.add(name, time_ns, error_ns)
    outside_ns = max(0, wall_ns - start_ns - fetch_ns)
    observed_ns = seen.wall_ns - seen.fetch_ns if seen else 0
    if seen and observed_ns > 0:
        hand_ns = int(outside_ns * seen.cpu_outside_ns / observed_ns)
        queue_ns = int(outside_ns * seen.queue_outside_ns / observed_ns)
    else:
        hand_ns = queue_ns = 0
    parts.add("hand_over", hand_ns)
    parts.add("run_queue", queue_ns)
    parts.add("idle", max(0, outside_ns - hand_ns - queue_ns))
    return wall_ns


def _spans(fetches: Sequence[Fetch], begin: int, end: int) -> list[Span]:
    spans = []
    for row in fetches:
        start, stop = max(row.start_ns, begin), min(row.end_ns, end)
        if stop > start:
            cpu_ns = row.cpu_ns * (stop - start) // max(1, row.fetch_ns)
            spans.append(Span(start, stop, cpu_ns))
    return spans


def _observed(
    process: _Process, reading: ThreadReadings, spans: Sequence[Span], first: int, end: int
) -> Seen:
    """What was seen of one life from its first fetch on.

    The thread's exact times also hold what it used before that (a spawned worker imports its
    libraries); how much follows from the share of samples in which it was runnable then.
    """
    before_ns = max(0, min(first, reading.last_ns) - reading.first_ns)
    runnable = samples = 0
    for time_ns, state in zip(reading.sample_ns, reading.states, strict=False):
        if time_ns < first:
            samples += 1
            runnable += STATES[state] == "running" if 0 <= state < len(STATES) else 0
    busy_ns = before_ns * runnable / samples if samples else 0.0
    both = reading.run_ns + reading.run_queue_ns
    busy_ns = min(busy_ns, both)
    before = (
        (int(busy_ns * reading.run_ns / both), int(busy_ns * reading.run_queue_ns / both))
        if both
        else (0, 0)
    )
    window = (max(first, reading.first_ns), min(end, reading.last_ns))
    return seen_in(reading, spans, window, process.helpers, before)


def _without_records(profile: Profile, process: _Process, parts: Parts) -> int:
    """A worker without fetch records (it ran before the profile, or never had a task): the
    sampler alone says what it did, without knowing the phase."""
    begin, end = process.life(profile)
    reading = process.reading
    if reading is None:
        parts.add("rest", end - begin)
        return end - begin
    window = min(end - begin, max(0, reading.last_ns - reading.first_ns))
    run_ns = min(reading.run_ns, window)
    queue_ns = min(reading.run_queue_ns, window - run_ns)
    parts.add("cpu", run_ns)
    parts.add("run_queue", queue_ns)
    found = shares(runs_of(reading, NO_PHASE))
    for name, (time_ns, error_ns) in blocked_parts(window - run_ns - queue_ns, found).items():
        parts.add(name, time_ns, error_ns)
    parts.add("rest", end - begin - window)
    return end - begin
