"""What was recorded at one moment: states of a thread, pauses, growth of a counter."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from statistics import median

from jupyter_ioscope.diagnosis.consumer_waits import consumer_reading
from jupyter_ioscope.diagnosis.inside import behind
from jupyter_ioscope.diagnosis.phases import Interval, clip, total_ns, union
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, Series, ThreadReadings
from jupyter_ioscope.model.records import Fetch

# A median of this many is as good as one of all, and a million rows need not be sorted.
_ENOUGH = 1_000


class Moments:
    """Looks into one profile at given spans of time (ns, CLOCK_MONOTONIC)."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._usual: dict[str, float] = {}
        self._fetches: dict[int, list[Fetch]] = {}

    # -- threads ----------------------------------------------------------------------------------

    def reading(self, pid: int) -> ThreadReadings | None:
        """The thread of a process that fetches: the consumer, or a worker's own."""
        return self._readings.get(pid)

    @cached_property
    def _readings(self) -> dict[int, ThreadReadings]:
        found = {row.pid: row for row in self.profile.threads if row.role == "worker"}
        consumer = consumer_reading(self.profile)
        if consumer is not None:
            found[self.profile.pid] = consumer
        return found

    def states(self, pid: int, span: Interval) -> dict[str, int]:
        """How often the fetching thread of a process was seen in each state. A private lock is
        named by what the process's other threads did, as in `inside.behind`."""
        reading = self.reading(pid)
        found: dict[str, int] = {}
        if reading is None:
            return found
        times, helpers = reading.sample_ns, self._helpers(pid)
        for at in range(bisect_left(times, span[0]), bisect_left(times, span[1])):
            number = reading.states[at] if at < len(reading.states) else -1
            state = STATES[number] if 0 <= number < len(STATES) else "blocked"
            if state == "futex":
                state = behind(helpers, times[at])
            found[state] = found.get(state, 0) + 1
        return found

    def _helpers(self, pid: int) -> list[ThreadReadings]:
        return [row for row in self.profile.threads if row.pid == pid and row.role == "other"]

    def silent_ns(self, span: Interval) -> int:
        """The longest stretch of a span in which the sampler read no thread at all; 0 where there
        was no sampler."""
        reading = consumer_reading(self.profile)
        if reading is None or len(reading.sample_ns) < 2:
            return 0
        times = reading.sample_ns
        first, last = bisect_left(times, span[0]), bisect_left(times, span[1])
        inner = times[first:last]
        marks = [max(span[0], times[0]), *inner, min(span[1], times[-1])]
        return max((b - a for a, b in pairwise(marks)), default=0)

    # -- what happened in a process ---------------------------------------------------------------

    def paused_ns(self, pid: int, span: Interval) -> int:
        """How long the garbage collector of a process ran."""
        return total_ns(clip(self._pauses.get(pid, ()), *span))

    @cached_property
    def _pauses(self) -> dict[int, list[Interval]]:
        found: dict[int, list[Interval]] = {}
        for row in self.profile.gc_pauses:
            found.setdefault(row.pid, []).append((row.start_ns, row.end_ns))
        return {pid: union(spans) for pid, spans in found.items()}

    def fetches_of(self, pid: int) -> list[Fetch]:
        """All fetches of one process, in order."""
        if pid not in self._fetches:
            rows = [row for row in self.profile.fetches if row.pid == pid]
            self._fetches[pid] = sorted(rows, key=lambda row: row.start_ns)
        return self._fetches[pid]

    def before(self, fetch: Fetch) -> Fetch | None:
        """The fetch that the same process made before this one."""
        rows = self.fetches_of(fetch.pid)
        at = bisect_left(rows, fetch.start_ns, key=lambda row: row.start_ns) - 1
        return rows[at] if at >= 0 else None

    # -- what is usual ----------------------------------------------------------------------------

    def usual(self, name: str, value: Callable[[Fetch], float]) -> float:
        """The median of a number over all fetches."""
        if name not in self._usual:
            self._usual[name] = usual_of(self.profile.fetches, value)
        return self._usual[name]

    @cached_property
    def usual_step_cpu_ns(self) -> float:
        return usual_of(self.profile.batches, lambda row: row.step_cpu_ns)

    @cached_property
    def usual_wait_cpu_ns(self) -> float:
        return usual_of(self.profile.batches, lambda row: row.wait_cpu_ns)

    # -- counters ---------------------------------------------------------------------------------

    def series(self, name: str) -> Series | None:
        found = self.profile.series.get(name)
        return found if found is not None and len(found.time_ns) >= 2 else None

    def mean_rate(self, name: str) -> float:
        """Mean growth a nanosecond of a cumulative series."""
        series = self.series(name)
        if series is None or series.time_ns[-1] <= series.time_ns[0]:
            return 0.0
        return max(0.0, series.total()) / (series.time_ns[-1] - series.time_ns[0])

    def grown(self, name: str, span: Interval) -> float:
        """Growth of a cumulative series that falls into a span.

        Readings are up to half a second apart: of the growth between the readings around the span,
        what the rest of that stretch usually brings is taken off.
        """
        grown, around_ns = self._around(name, span)
        beside_ns = max(0, around_ns - (span[1] - span[0]))
        return max(0.0, grown - beside_ns * self.mean_rate(name))

    def rate(self, name: str, span: Interval) -> float:
        """Growth a nanosecond between the readings around a span."""
        grown, around_ns = self._around(name, span)
        return max(0.0, grown) / around_ns if around_ns > 0 else 0.0

    def _around(self, name: str, span: Interval) -> tuple[float, int]:
        """Growth between the readings around a span, and how far apart these are in ns."""
        series = self.series(name)
        if series is None:
            return 0.0, 0
        times, values = series.time_ns, series.values
        first = max(0, min(bisect_left(times, span[0]) - 1, len(times) - 2))
        last = max(first + 1, min(bisect_left(times, span[1]), len(times) - 1))
        return values[last] - values[first], times[last] - times[first]


def usual_of(rows: Sequence[object], value: Callable[..., float]) -> float:
    """The median of a number over rows (of a thousand of them, where there are more)."""
    some: Iterable[object] = rows
    if len(rows) > _ENOUGH:
        some = (rows[i] for i in random.Random(0).sample(range(len(rows)), _ENOUGH))
    numbers = [value(row) for row in some]
    return float(median(numbers)) if numbers else 0.0
