"""Batches that took far longer than their neighbours, how they are spaced, and likely causes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from jupyter_ioscope.diagnosis.moments import Moments
from jupyter_ioscope.diagnosis.outlier_causes import (
    MOST_CAUSES,
    causes_of_fetch,
    causes_of_step,
    causes_of_wait,
)
from jupyter_ioscope.diagnosis.robust import departures, rounds
from jupyter_ioscope.diagnosis.same_loader import numbers_of_loaders
from jupyter_ioscope.diagnosis.stall_causes import shared_causes
from jupyter_ioscope.diagnosis.stalls import rhythm
from jupyter_ioscope.model.diagnosis import Likely, Outlier, Outliers, Stall
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.records import Batch, Fetch

SHOWN = 10
# Shorter excesses are the scheduler's, or make no difference to a batch as a whole.
LEAST_EXCESS_NS = 1_000_000.0
LEAST_EXCESS_PART = 0.1
# Causes of this many members speak for all of a stall.
_MEMBERS = 6
_STALLS = 3


@dataclass
class _Found:
    """One outlier before its causes are known. `place` counts the batches of its loader."""

    outlier: Outlier
    place: int
    first: bool  # among the first batches of its epoch
    batch: Batch | None = None
    fetch: Fetch | None = None


@dataclass
class _Group:
    """All batches and fetches of one loader (and of those made anew like it)."""

    workers: int
    batches: list[Batch] = field(default_factory=list)
    fetches: list[Fetch] = field(default_factory=list)

    @cached_property
    def least_ns(self) -> float:
        """The smallest excess that is of interest: a part of what a batch takes in all."""
        rows = self.batches
        whole_ns = rows[-1].step_end_ns - rows[0].wait_start_ns if rows else 0
        return max(LEAST_EXCESS_NS, LEAST_EXCESS_PART * whole_ns / max(1, len(rows)))


def outliers_of(profile: Profile) -> Outliers:
    """The worst outliers with likely causes, the count of all, and stalls at even distances.

    Waits, steps and fetches of workers are judged apart, each against the rolling median of its
    neighbours. A wait and the fetch that made it wait are one outlier. Ranked by what the loop
    lost, then by length.
    """
    found: list[_Found] = []
    for group in _groups(profile):
        found += _slow_waits(group) + _slow_steps(group)
        found += _slow_fetches(group)
    moments = Moments(profile)
    _join_fetches(profile, found)
    found = _without_doubles(found)
    stalls = _stalls(moments, found)
    found.sort(key=lambda row: (-row.outlier.lost_ns, -row.outlier.time_ns, row.place))
    worst = tuple(_explained(moments, row, stalls) for row in found[:SHOWN])
    lost_ns = sum(row.outlier.lost_ns for row in found)
    return Outliers(worst, len(found), lost_ns, tuple(stalls))


def _groups(profile: Profile) -> list[_Group]:
    numbers = numbers_of_loaders(profile)
    workers = {info.loader: info.num_workers for info in profile.loaders}
    groups: dict[int, _Group] = {}
    for batch in profile.batches:
        number = numbers.get(batch.loader, batch.loader)
        if number not in groups:
            groups[number] = _Group(workers.get(number, 0))
        groups[number].batches.append(batch)
    for fetch in profile.fetches:
        number = numbers.get(fetch.loader, fetch.loader)
        if fetch.worker >= 0 and number in groups:
            groups[number].fetches.append(fetch)
    for group in groups.values():
        group.batches.sort(key=lambda row: row.wait_end_ns)
        group.fetches.sort(key=lambda row: row.start_ns)
    return list(groups.values())


def _slow_waits(group: _Group) -> list[_Found]:
    """Batches of N workers often come N at a time: one long wait, then none. So waits are judged
    over a round of N batches, and the longest wait of a slow round is the outlier."""
    length = max(1, group.workers)
    waits = [max(0, row.wait_end_ns - row.wait_start_ns) for row in group.batches]
    best: dict[int, Outlier] = {}
    sums = rounds(waits, length)
    for row in departures(sums, group.least_ns):
        window = range(max(0, row.at - length + 1), row.at + 1)
        index = max(window, key=lambda i: waits[i])
        usual = int(row.usual / length)
        lost = min(waits[index], int(sums[row.at] - row.usual))
        before = best.get(index)
        if before is None or row.score > before.score:
            batch = group.batches[index]
            best[index] = Outlier(
                "wait", batch.batch, batch.worker, batch.wait_start_ns, batch.wait_end_ns,
                usual, row.score, max(0, lost),
            )  # fmt: skip
    firsts = _firsts(group, length)
    return [
        _Found(outlier, index, index in firsts, group.batches[index])
        for index, outlier in sorted(best.items())
    ]


def _slow_steps(group: _Group) -> list[_Found]:
    steps = [max(0, row.step_end_ns - row.wait_end_ns) for row in group.batches]
    firsts = _firsts(group, 1)
    found = []
    for row in departures(steps, group.least_ns):
        batch = group.batches[row.at]
        lost_ns = int(steps[row.at] - row.usual)
        outlier = Outlier(
            "step", batch.batch, -1, batch.wait_end_ns, batch.step_end_ns,
            int(row.usual), row.score, lost_ns,
        )  # fmt: skip
        found.append(_Found(outlier, row.at, row.at in firsts, batch))
    return found


def _slow_fetches(group: _Group) -> list[_Found]:
    times = [max(0, row.end_ns - row.start_ns) for row in group.fetches]
    seen: set[int] = set()
    firsts = set()
    for index, row in enumerate(group.fetches):
        if row.pid not in seen:
            seen.add(row.pid)
            firsts.add(index)
    found = []
    for slow in departures(times, group.least_ns):
        fetch = group.fetches[slow.at]
        outlier = Outlier(
            "fetch", -1, fetch.worker, fetch.start_ns, fetch.end_ns,
            int(slow.usual), slow.score, 0,
        )  # fmt: skip
        found.append(_Found(outlier, slow.at, slow.at in firsts, None, fetch))
    return found


def _firsts(group: _Group, length: int) -> set[int]:
    """Places of the first `length` batches of each epoch."""
    epochs = [row.epoch for row in group.batches]
    begins = [0, *(at + 1 for at, (a, b) in enumerate(pairwise(epochs)) if a != b)]
    return {place for begin in begins for place in range(begin, begin + length)}


_Key = tuple[int, int, int]


def _join_fetches(profile: Profile, found: Iterable[_Found]) -> None:
    """Gives waits the fetch that made their batch, and fetches their batch."""
    waits: dict[_Key, _Found] = {}
    alone: list[_Found] = []
    slow: dict[_Key, _Found] = {}
    for row in found:
        if row.batch is not None and row.outlier.phase == "wait":
            if row.batch.worker >= 0:
                waits[row.batch.epoch, row.batch.worker, row.batch.task] = row
            else:
                alone.append(row)
        elif row.fetch is not None:
            slow[row.fetch.epoch, row.fetch.worker, row.fetch.task] = row
    if waits or alone:
        own = []
        for fetch in profile.fetches:
            if fetch.worker < 0:
                own.append(fetch)
            elif (wait := waits.get((fetch.epoch, fetch.worker, fetch.task))) is not None:
                wait.fetch = fetch
        _inside(alone, own)
    if slow:
        for batch in profile.batches:
            if (one := slow.get((batch.epoch, batch.worker, batch.task))) is not None:
                one.batch = batch
                one.outlier = replace(one.outlier, batch=batch.batch)


def _inside(waits: Sequence[_Found], fetches: Sequence[Fetch]) -> None:
    """A fetch that the consumer made itself lies inside the wait."""
    by_start = sorted(fetches, key=lambda row: row.start_ns)
    at = 0
    for row in sorted(waits, key=lambda one: one.outlier.start_ns):
        while at < len(by_start) and by_start[at].start_ns < row.outlier.start_ns:
            at += 1
        if at < len(by_start) and by_start[at].start_ns <= row.outlier.end_ns:
            row.fetch = by_start[at]


def _without_doubles(found: list[_Found]) -> list[_Found]:
    """A slow fetch whose batch was waited for, or that held up one that was, is told by that
    wait."""
    waits = [row for row in found if row.outlier.phase == "wait"]
    spans = sorted((row.outlier.start_ns, row.outlier.end_ns) for row in waits)
    kept = []
    at = 0
    for row in sorted(found, key=lambda one: one.outlier.start_ns):
        if row.outlier.phase == "fetch":
            while at < len(spans) and spans[at][1] <= row.outlier.start_ns:
                at += 1
            if at < len(spans) and spans[at][0] < row.outlier.end_ns:
                continue
        kept.append(row)
    return kept


def _stalls(moments: Moments, found: list[_Found]) -> list[Stall]:
    """Groups by spacing; marks the outliers that belong to one."""
    stalls: list[Stall] = []
    for phase in ("wait", "step", "fetch"):
        rows = [row for row in found if row.outlier.phase == phase]
        firsts = [row for row in rows if row.first]
        if firsts:
            stalls.append(_stall(moments, "epoch_start", firsts, 0.0, len(stalls)))
        rest = [row for row in rows if not row.first]
        for _ in range(_STALLS):
            rest.sort(key=lambda row: row.outlier.start_ns)
            members, every = _evenly(rest)
            if not members:
                break
            stalls.append(_stall(moments, "periodic", members, every, len(stalls)))
            taken = {id(row) for row in members}
            rest = [row for row in rest if id(row) not in taken]
    return stalls


def _evenly(rows: list[_Found]) -> tuple[list[_Found], float]:
    """Outliers at even distances, counted in batches or, where that fits more of them, in time
    (then the second value is 0). Where all of them together have no rhythm, the large ones may."""
    largest = max((_excess(row) for row in rows), default=0)
    large = [row for row in rows if _excess(row) >= largest / 2]
    for some in (rows, large):
        by_place = sorted(some, key=lambda row: row.place)
        batches = rhythm([row.place for row in by_place], 0.02, grain=1)
        times = rhythm([row.outlier.start_ns / 1e9 for row in some], 0.03)
        if batches and (times is None or len(batches.members) >= len(times.members)):
            return [by_place[i] for i in batches.members], batches.every
        if times:
            return [some[i] for i in times.members], 0.0
    return [], 0.0


def _excess(row: _Found) -> int:
    return row.outlier.time_ns - row.outlier.usual_ns


def _stall(moments: Moments, kind: str, members: list[_Found], every: float, number: int) -> Stall:
    for row in members:
        row.outlier = replace(row.outlier, stall=number)
    largest = sorted(members, key=lambda row: -row.outlier.time_ns)[:_MEMBERS]
    starts = sorted(row.outlier.start_ns for row in members)
    gaps = sorted(b - a for a, b in pairwise(starts))
    phase = members[0].outlier.phase
    causes = [_causes(moments, row) for row in largest]
    return Stall(
        kind,
        phase,
        every,
        gaps[len(gaps) // 2] / 1e9 if gaps else 0.0,
        len(members),
        sum(row.outlier.lost_ns for row in members),
        shared_causes(moments.profile, phase, len(members), causes, every),
    )


def _explained(moments: Moments, row: _Found, stalls: Sequence[Stall]) -> Outlier:
    """An outlier with its causes: first that of the stall it belongs to, then its own."""
    causes = _causes(moments, row)
    stall = stalls[row.outlier.stall] if row.outlier.stall >= 0 else None
    if stall is not None and stall.every and stall.causes:
        first = stall.causes[0]
        first = first._replace(text=f"like every {stall.every:,.0f} batches: {first.text}")
        own = [one for one in causes if one.cause == first.cause]
        others = [one for one in causes if one.cause != first.cause]
        causes = (*(own or [first]), *others)[:MOST_CAUSES]
    return replace(row.outlier, causes=causes)


def _causes(moments: Moments, row: _Found) -> tuple[Likely, ...]:
    usual_ns = row.outlier.usual_ns
    if row.outlier.phase == "step" and row.batch is not None:
        return causes_of_step(moments, row.batch, usual_ns)
    if row.outlier.phase == "wait" and row.batch is not None:
        return causes_of_wait(moments, row.batch, row.fetch, usual_ns, row.first)
    if row.fetch is not None:
        return causes_of_fetch(moments, row.fetch, usual_ns)
    return ()
