"""Tells what a thread was in the middle of: intervals of time, and which fetch made which batch."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from jupyter_ioscope.model.records import Batch, Fetch

Interval = tuple[int, int]  # start and end in ns, CLOCK_MONOTONIC


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same stretches of time, sorted and without overlap."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def total_ns(intervals: Iterable[Interval]) -> int:
    return sum(end - start for start, end in intervals)


def clip(intervals: Iterable[Interval], first_ns: int, last_ns: int) -> list[Interval]:
    """What of the intervals lies between two instants."""
    return [
        (max(start, first_ns), min(end, last_ns))
        for start, end in intervals
        if min(end, last_ns) > max(start, first_ns)
    ]


def subtract(whole: Sequence[Interval], holes: Sequence[Interval]) -> list[Interval]:
    """What of `whole` lies outside `holes`. Both as `union` gives them."""
    left: list[Interval] = []
    at = 0
    for start, end in whole:
        while at < len(holes) and holes[at][1] <= start:
            at += 1
        begin, hole = start, at
        while hole < len(holes) and holes[hole][0] < end:
            if holes[hole][0] > begin:
                left.append((begin, holes[hole][0]))
            begin = max(begin, holes[hole][1])
            hole += 1
        if begin < end:
            left.append((begin, end))
    return left


def intersect_ns(one: Sequence[Interval], other: Sequence[Interval]) -> int:
    """Time that lies in both. Both as `union` gives them."""
    return total_ns(one) - total_ns(subtract(one, other))


class Lookup:
    """Finds the interval around an instant by bisection. Intervals must not overlap."""

    def __init__(self, intervals: Sequence[Interval]) -> None:
        self._starts = [start for start, _ in intervals]
        self._ends = [end for _, end in intervals]

    def index(self, time_ns: int) -> int:
        """Number of the interval that holds `time_ns`, -1 if none does."""
        at = bisect_right(self._starts, time_ns) - 1
        return at if at >= 0 and time_ns < self._ends[at] else -1


def made_by(batches: Iterable[Batch], fetches: Iterable[Fetch]) -> dict[int, Fetch]:
    """Number of a batch -> the fetch that made it; batches whose fetch is unknown are left out.

    A worker's fetch carries epoch, worker and task of its batch. A fetch that the consumer did
    itself lies inside the batch's wait.
    """
    by_task: dict[tuple[int, int, int], Fetch] = {}
    own: list[Fetch] = []
    for fetch in fetches:
        if fetch.worker >= 0:
            by_task[fetch.epoch, fetch.worker, fetch.task] = fetch
        else:
            own.append(fetch)
    own.sort(key=lambda fetch: fetch.start_ns)
    starts = [fetch.start_ns for fetch in own]
    found: dict[int, Fetch] = {}
    for batch in batches:
        fetch_found = by_task.get((batch.epoch, batch.worker, batch.task))
        if fetch_found is None and own:
            at = bisect_right(starts, batch.wait_end_ns) - 1
            if at >= 0 and starts[at] >= batch.wait_start_ns:
                fetch_found = own[at]
        if fetch_found is not None:
            found[batch.batch] = fetch_found
    return found
