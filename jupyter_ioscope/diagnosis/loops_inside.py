"""How long each loader kept the consumer, where loops run inside one another.

A step may hold a whole loop over another loader: a validation after every few batches. Its time is
that loader's, and no part of the step it stands in.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.records import Batch, Epoch


class Inside(NamedTuple):
    """An epoch that began and ended in the step of another loader's batch."""

    batch: int  # number of that batch
    loader: int  # number of that other loader
    time_ns: int


def loops_inside(profile: Profile) -> list[Inside]:
    """Every epoch that stands in one step of another loader. Of loops that go on at the same time,
    step by step, neither stands in the other."""
    rows: dict[int, list[Batch]] = {}
    for row in profile.batches:
        rows.setdefault(row.loader, []).append(row)
    if len(rows) < 2:
        return []
    found = []
    lasts = _last_ends(profile)
    marks = {loader: [row.wait_end_ns for row in own] for loader, own in rows.items()}
    for epoch in profile.epochs:
        end_ns = _end_ns(epoch, lasts)
        for loader, own in rows.items():
            at = bisect_right(marks[loader], epoch.iter_start_ns) - 1
            if loader != epoch.loader and at >= 0 and end_ns <= own[at].step_end_ns:
                found.append(Inside(own[at].batch, loader, end_ns - epoch.iter_start_ns))
                break
    return found


def own_times_ns(profile: Profile) -> dict[int, int]:
    """Number of a loader -> time in its waits and steps, and in starting and ending its epochs,
    without loops over other loaders inside its steps."""
    spent: dict[int, int] = {}
    for row in profile.batches:
        spent[row.loader] = spent.get(row.loader, 0) + row.wait_ns + row.step_ns
    lasts = _last_ends(profile)
    for epoch in profile.epochs:
        if epoch.loader in spent:
            spent[epoch.loader] += epoch.iter_end_ns - epoch.iter_start_ns
            spent[epoch.loader] += max(0, _end_ns(epoch, lasts) - lasts.get(epoch.epoch, 0))
    for inner in loops_inside(profile):
        spent[inner.loader] -= inner.time_ns
    return spent


def _last_ends(profile: Profile) -> dict[int, int]:
    """Number of an epoch -> end of its last step."""
    return {row.epoch: row.step_end_ns for row in profile.batches}


def _end_ns(epoch: Epoch, lasts: dict[int, int]) -> int:
    return epoch.end_ns if epoch.end_ns is not None else lasts.get(epoch.epoch, epoch.iter_end_ns)
