"""Which series of a profile the report shows, and how readings become a curve of few points."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Series

# Quantity -> names of series that hold it, best first (capture/probes gives them). A "*" stands for
# the number of a device.
_NAMES: dict[str, tuple[str, ...]] = {
    "cpu": ("tree_cpu_ns",),
    "throttled": ("cgroup_throttled_ns",),
    "memory": ("tree_pss_bytes", "tree_rss_bytes"),
    "disk_read": ("tree_read_bytes", "machine_disk_read_bytes"),
    "network": ("net_received_bytes",),
    "io_wait": ("psi_io_some_us", "machine_iowait_ns"),
    "gpu": ("gpu*_busy_fraction",),
    "gpu_memory": ("gpu*_memory_bytes",),
}
_PER_SECOND = {"ns": 1e-9, "us": 1e-6}  # growth of a time per second: cores, or a share of time

_STEADY = 0.1  # a change that is seen in a row of the timeline


class Curve(NamedTuple):
    """Readings over time: times in ns (CLOCK_MONOTONIC), one value each."""

    time_ns: Sequence[int]
    values: Sequence[float]

    def mean(self) -> float:
        return sum(self.values) / len(self.values) if self.values else 0.0

    def peak(self) -> float:
        return max(self.values, default=0.0)


def find(profile: Profile, quantity: str) -> list[Series]:
    """The series that hold a quantity: one, or one a device; none where it was not recorded."""
    for name in _NAMES[quantity]:
        before, star, after = name.partition("*")
        names = [name] if not star else _numbered(profile, before, after)
        if found := _filled([profile.series[one] for one in names if one in profile.series]):
            return found
    return []


def _numbered(profile: Profile, before: str, after: str) -> list[str]:
    middles = {
        name: name[len(before) : len(name) - len(after)]
        for name in profile.series
        if name.startswith(before) and name.endswith(after)
    }
    numbers = {name: int(middle) for name, middle in middles.items() if middle.isdecimal()}
    return sorted(numbers, key=lambda name: numbers[name])


def _filled(series: list[Series]) -> list[Series]:
    return [one for one in series if one.values and len(one.values) == len(one.time_ns)]


def curve(series: Series) -> Curve:
    """A gauge as it is; a cumulative series as its growth per second between readings.

    Growth of a CPU time is in cores, of another time a fraction, of bytes in bytes/s.
    """
    if series.kind != "cumulative":
        return Curve(series.time_ns, series.values)
    scale = _PER_SECOND.get(series.unit, 1.0)
    times: list[int] = []
    rates: list[float] = []
    readings = zip(series.time_ns, series.values, strict=True)
    for (t0, v0), (t1, v1) in pairwise(readings):
        if t1 > t0:
            times.append(t1)
            rates.append(max(0.0, v1 - v0) * scale * 1e9 / (t1 - t0))
    return Curve(times, rates)


def held(profile: Profile, series: Series) -> Curve:
    """Exact memory (PSS) is read rarely, because it is dear: its last value holds for as long as
    resident memory, which is read always, stays within `_STEADY` of what it was then."""
    found = curve(series)
    resident = profile.series.get("tree_rss_bytes")
    if series.name != "tree_pss_bytes" or resident is None or not found.time_ns:
        return found
    last_ns = found.time_ns[-1]
    before: float | None = None
    until_ns = last_ns
    for time_ns, value in zip(resident.time_ns, resident.values, strict=False):
        if time_ns <= last_ns or before is None:
            before = value
        elif abs(value - before) > _STEADY * before:
            break
        else:
            until_ns = time_ns
    if until_ns <= last_ns:
        return found
    return Curve([*found.time_ns, until_ns], [*found.values, found.values[-1]])


def thinned(curve: Curve, points: int) -> Curve:
    """At most `points` readings. Of each stretch of time its smallest and largest are kept, so that
    no peak disappears (as min/max decimation in oscilloscopes does)."""
    if len(curve.values) <= points:
        return curve
    buckets = max(1, points // 2)
    first, last = curve.time_ns[0], curve.time_ns[-1]
    width = (last - first) / buckets or 1.0
    lows: dict[int, int] = {}
    highs: dict[int, int] = {}
    for index, time_ns in enumerate(curve.time_ns):
        bucket = min(buckets - 1, int((time_ns - first) / width))
        value = curve.values[index]
        if bucket not in lows or value < curve.values[lows[bucket]]:
            lows[bucket] = index
        if bucket not in highs or value > curve.values[highs[bucket]]:
            highs[bucket] = index
    kept = sorted({*lows.values(), *highs.values()})
    return Curve([curve.time_ns[i] for i in kept], [curve.values[i] for i in kept])


def batch_waits(profile: Profile) -> Curve:
    """How long the consumer waited for each batch, in ns, at the time the batch arrived."""
    ordered = sorted(profile.batches, key=lambda batch: batch.wait_end_ns)
    return Curve([b.wait_end_ns for b in ordered], [float(b.wait_ns) for b in ordered])
