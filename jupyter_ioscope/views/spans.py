"""The run in equal stretches: what a selection on the timeline adds up.

Whole numbers as text ("3 0 12"): in a notebook file every number of a list takes a line of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from jupyter_ioscope.diagnosis.over_time import (
    Rows,
    Stretches,
    consumer_over_time,
    stretches_of,
    worker_over_time,
)
from jupyter_ioscope.diagnosis.worker_waits import worker_lives
from jupyter_ioscope.model.diagnosis import PARTS, ThreadWaits, Waits
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.units import nanoseconds, seconds
from jupyter_ioscope.views.bars import drawn_workers, handing_on, merged
from jupyter_ioscope.views.histogram import histogram
from jupyter_ioscope.views.shapes import ISpanPart, ISpanRow, ISpans, IWaitCounts

STRETCHES = 40  # a selection is no finer: of a run of 10 s and 25 Hz, one holds six samples
_BUCKETS = 24  # of waits
_WHOLE = 1000  # what a part that fills a stretch is written as


def spans(profile: Profile, waits: Waits, count: int = STRETCHES) -> ISpans | None:
    """None where nothing was iterated."""
    if not profile.batches or profile.wall_ns <= 0:
        return None
    grid = stretches_of(profile, count)
    batches, samples, counted = _batches(profile, grid)
    return ISpans(
        marks=[seconds(n * grid.width_ns / 1e9) for n in range(count + 1)],
        seconds=round(grid.width_ns / 1e9, 6),
        rows=[_row(row, grid) for row in _rows(profile, waits, grid)],
        batches=packed(batches),
        samples=packed(samples),
        waits=counted,
    )


def packed(values: Iterable[float]) -> str:
    """Numbers, rounded, as one text."""
    return " ".join(str(round(value)) for value in values)


def _rows(profile: Profile, waits: Waits, grid: Stretches) -> list[Rows]:
    """One a bar of `wait_bars`, in its order; empty for threads that were not divided over time."""
    found: list[Rows] = []
    if waits.consumer is not None:
        found.append(consumer_over_time(profile, waits.consumer, grid))
    lives = worker_lives(profile)
    if len(lives) == len(waits.workers):
        drawn = drawn_workers(waits.workers)
        pairs = list(zip(waits.workers, lives, strict=True))
        found += [worker_over_time(worker, own, grid) for worker, own in pairs[:drawn]]
        if rest := pairs[drawn:]:
            both: ThreadWaits = merged([worker for worker, _ in rest])
            found.append(worker_over_time(both, [one for _, own in rest for one in own], grid))
    return [*found, *({} for _ in handing_on(waits))]


def _row(row: Rows, grid: Stretches) -> ISpanRow:
    parts = [
        ISpanPart(name=name, times=packed(_WHOLE * t / grid.width_ns for t in row[name]))
        for name in PARTS
        if name in row
    ]
    return ISpanRow(parts=parts)


def _batches(profile: Profile, grid: Stretches) -> tuple[list[int], list[int], IWaitCounts]:
    """Batches and samples that arrived in each stretch; and how many of them took how long."""
    batches, samples = [0] * grid.number, [0] * grid.number
    edges, _ = histogram([[float(row.wait_ns) for row in profile.batches]], _BUCKETS)
    counts = [[0] * grid.number for _ in edges[1:]]
    for row in profile.batches:
        at = grid.at(row.wait_end_ns)
        batches[at] += 1
        samples[at] += max(0, row.samples)
        counts[_bucket(edges, row.wait_ns)][at] += 1
    texts = [nanoseconds(round(edge)) for edge in edges]
    return batches, samples, IWaitCounts(edges=texts, counts=[packed(row) for row in counts])


def _bucket(edges: Sequence[float], value: float) -> int:
    return min(len(edges) - 2, max(0, bisect_right(edges, value) - 1))
