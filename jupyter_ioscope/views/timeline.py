"""The timeline: a few curves over one time axis, each with the one number that sums it up."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.units import NBSP, bytes_text, nanoseconds, percent, seconds, significant
from jupyter_ioscope.views.quantities import Curve, batch_waits, find, held, thinned
from jupyter_ioscope.views.shapes import ITimeline, ITrack

POINTS = 120  # a row is some 700 pixels wide; more points would not show


class Row(NamedTuple):
    """What a track shows. The top of the row is `full` or its own peak, whichever is higher.

    `unit_size` is one `unit` in the quantity's own unit, for axes with numbers. A row that is
    `silent` is left out where nothing happened: most groups have no quota that could hold them.
    """

    key: str
    label: str
    text: Callable[[float], str]
    sum_up: str  # "median", "mean" or "peak": the value that is printed beside the row
    unit: str
    unit_size: float
    full: float | None = None
    silent: bool = False


def _per_second(value: float) -> str:
    return f"{bytes_text(value)}/s"


def _cores(value: float) -> str:
    return f"{significant(round(value, 2), 2)}{NBSP}cores"


ROWS = (
    Row("wait", "batch wait", nanoseconds, "median", "ms", 1e6),
    Row("cpu", "CPU", _cores, "mean", "cores", 1.0),
    # Threads of the control group that are held at once add up, to more than 100 %.
    Row("throttled", "held by quota", percent, "mean", "%", 0.01, 1.0, silent=True),
    Row("io_wait", "I/O wait", percent, "mean", "%", 0.01, 1.0),
    Row("disk_read", "disk reads", _per_second, "mean", "MB/s", 1e6),
    Row("network", "network", _per_second, "mean", "MB/s", 1e6),
    Row("gpu", "GPU", percent, "mean", "%", 0.01, 1.0),
    Row("memory", "memory", bytes_text, "peak", "MB", 1e6),
    Row("gpu_memory", "GPU memory", bytes_text, "peak", "MB", 1e6),
)


def timeline(profile: Profile, points: int = POINTS) -> ITimeline:
    """All rows that were recorded, thinned to `points` each; rows of several devices by number."""
    tracks = [
        _track(row, f"{row.key}-{i}" if i else row.key, label, values, profile, points)
        for row in ROWS
        for i, (label, values) in enumerate(curves(profile, row))
    ]
    return ITimeline(tracks=tracks, start=seconds(0), end=seconds(profile.wall_s))


def curves(profile: Profile, row: Row) -> list[tuple[str, Curve]]:
    """Label and readings of a row: none where nothing was recorded, several for several devices."""
    if row.key == "wait":
        found = [(row.label, batch_waits(profile))]
    else:
        series = find(profile, row.key)
        numbered = len(series) > 1
        found = [
            (f"{row.label} {i}" if numbered else row.label, held(profile, one))
            for i, one in enumerate(series)
        ]
    return [(label, one) for label, one in found if _tells(row, one)]


def _tells(row: Row, readings: Curve) -> bool:
    finite = [value for value in readings.values if math.isfinite(value)]
    return any(finite) if row.silent else bool(finite)


def summed_up(row: Row, values: Curve) -> float:
    """The one value that is printed beside a row."""
    finite = sorted(value for value in values.values if math.isfinite(value))
    if row.sum_up == "median":
        return finite[len(finite) // 2]
    return finite[-1] if row.sum_up == "peak" else sum(finite) / len(finite)


def _track(row: Row, key: str, label: str, values: Curve, profile: Profile, points: int) -> ITrack:
    drawn = thinned(values, points)
    peak = max(value for value in values.values if math.isfinite(value))
    full = max(row.full or peak, peak) or 1.0
    span = profile.wall_ns or 1
    return ITrack(
        key=key,
        label=label,
        value=row.text(summed_up(row, values)),
        x=[_within((t - profile.start_ns) / span) for t in drawn.time_ns],
        y=[_within(value / full) for value in drawn.values],
        title=_title(row, label, summed_up(row, values), peak),
        sumUp=row.sum_up,
    )


def _title(row: Row, label: str, value: float, peak: float) -> str:
    summed = "" if row.sum_up == "peak" else f"{row.sum_up} {row.text(value)}, "
    return f"{label}: {summed}peak {row.text(peak)}"


def _within(fraction: float) -> float:
    return round(min(1.0, max(0.0, fraction)), 4) if math.isfinite(fraction) else 0.0
