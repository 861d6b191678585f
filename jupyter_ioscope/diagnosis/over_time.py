"""How the parts of a thread's time lay over the run, in stretches of equal length.

Where steps, waits and fetches lay is exact, from records; what a thread did inside them comes from
its sampled states. Both are then scaled so that the stretches of a part add up to the part's time
in the whole run, and the parts of a stretch to the time that the thread was there (iterative
proportional fitting: Deming and Stephan, Annals of Mathematical Statistics 11, 1940).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from jupyter_ioscope.diagnosis.consumer_waits import consumer_reading
from jupyter_ioscope.diagnosis.inside import IN_FETCH, NO_PHASE
from jupyter_ioscope.diagnosis.loop import loop_of
from jupyter_ioscope.diagnosis.phases import Interval, Lookup, clip, subtract, union
from jupyter_ioscope.diagnosis.worker_waits import Life
from jupyter_ioscope.model.diagnosis import ThreadWaits
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, ThreadReadings

_ROUNDS = 25  # of fitting: tables of this size agree to far below a pixel
_LEAST = 1e-6  # of a stretch: a part that nothing places is spread evenly
_UNSEEN = 0.1  # samples that each part is given where there are few (Laplace)
_EXACT = ("step", "start_up")  # lie where records say, whatever was sampled
_RUNNABLE = ("cpu", "run_queue", "hand_over")  # all of them are samples of a runnable thread
_WAITING = dict.fromkeys(IN_FETCH, "idle") | {"gil": "gil", "disk": "disk"}


class Stretches(NamedTuple):
    """`number` stretches of `width_ns` from `start_ns` on."""

    start_ns: int
    width_ns: float
    number: int

    def at(self, time_ns: int) -> int:
        """The stretch that holds an instant; the first or last for instants before or after."""
        return min(self.number - 1, max(0, int((time_ns - self.start_ns) / self.width_ns)))


Rows = dict[str, list[float]]  # part -> nanoseconds in each stretch


def stretches_of(profile: Profile, count: int) -> Stretches:
    """The whole run in `count` stretches."""
    return Stretches(profile.start_ns, max(1, profile.wall_ns) / count, count)


def spread(intervals: Iterable[Interval], grid: Stretches) -> list[float]:
    """Nanoseconds of the intervals in each stretch."""
    found = [0.0] * grid.number
    for start, end in intervals:
        first, last = grid.at(start), grid.at(end)
        if first == last:
            found[first] += end - start
            continue
        for number in range(first, last + 1):
            left = grid.start_ns + number * grid.width_ns
            found[number] += max(0.0, min(end, left + grid.width_ns) - max(start, left))
    return found


def consumer_over_time(profile: Profile, consumer: ThreadWaits, grid: Stretches) -> Rows:
    """The parts of the consumer in each stretch; empty without a loop."""
    loop = loop_of(profile)
    if loop is None:
        return {}
    whole = [(loop.start_ns, loop.end_ns)]
    waits = union(loop.waits)
    blocked = union((*loop.starts, *loop.waits, *loop.ends))
    fetches = union((row.start_ns, row.end_ns) for row in profile.fetches if row.worker < 0)
    inside, names = (fetches, IN_FETCH) if fetches else (waits, _WAITING)
    seeds = _inside(inside, [consumer_reading(profile)], names, grid)
    _add(seeds, "step", spread(subtract(whole, blocked), grid))
    _add(seeds, "start_up", spread(union((*loop.starts, *loop.ends)), grid))
    _add(seeds, "idle", spread(subtract(waits, inside), grid))
    return _fitted(consumer, spread(whole, grid), seeds)


def worker_over_time(worker: ThreadWaits, lives: Sequence[Life], grid: Stretches) -> Rows:
    """The parts of one or several workers in each stretch, from all of their lives."""
    presence = [0.0] * grid.number
    seeds: Rows = {}
    for life in lives:
        whole = [(life.begin_ns, life.end_ns)]
        presence = _sum(presence, spread(whole, grid))
        fetches = clip(union((row.start_ns, row.end_ns) for row in life.fetches), *whole[0])
        inside, names = (fetches, IN_FETCH) if fetches else (whole, NO_PHASE)
        for name, row in _inside(inside, [life.reading], names, grid).items():
            _add(seeds, name, row)
        if fetches:
            first = fetches[0][0]
            _add(seeds, "start_up", spread([(life.begin_ns, first)], grid))
            outside = spread(subtract([(first, life.end_ns)], fetches), grid)
            for name in ("idle", "hand_over"):
                _add(seeds, name, outside)
    return _fitted(worker, presence, seeds)


def _inside(
    intervals: Sequence[Interval],
    readings: Iterable[ThreadReadings | None],
    names: Mapping[str, str],
    grid: Stretches,
) -> Rows:
    """The time of `intervals` in each stretch, divided as the states that were sampled in them."""
    lengths = spread(intervals, grid)
    lookup = Lookup(intervals)
    counts: Rows = {}
    for reading in readings:
        for when, number in zip(reading.sample_ns, reading.states, strict=True) if reading else ():
            if lookup.index(when) >= 0:
                state = STATES[number]
                for name in _RUNNABLE if state == "running" else (names[state],):
                    counts.setdefault(name, [0.0] * grid.number)[grid.at(when)] += 1
    for name in {*_RUNNABLE, "other", "rest", *names.values()}:
        counts.setdefault(name, [0.0] * grid.number)
    seen = [sum(row[i] for row in counts.values()) for i in range(grid.number)]
    unseen = _UNSEEN * len(counts)
    return {
        name: [
            length * (value + _UNSEEN) / (total + unseen)
            for length, value, total in zip(lengths, row, seen, strict=True)
        ]
        for name, row in counts.items()
    }


def _fitted(thread: ThreadWaits, presence: Sequence[float], seeds: Rows) -> Rows:
    """`seeds` scaled until rows and columns add up to what is known of the whole run."""
    totals = {part.name: float(part.time_ns) for part in thread.parts if part.time_ns > 0}
    if not totals or sum(presence) <= 0:
        return {}
    columns = _scaled(presence, sum(totals.values()))
    done = {}
    for name in _EXACT:
        if name in totals:
            row = seeds.get(name, columns)
            done[name] = _scaled(row if sum(row) > 0 else columns, totals.pop(name))
            columns = [max(0.0, a - b) for a, b in zip(columns, done[name], strict=True)]
    if totals:
        done |= _raked(totals, _scaled(columns, sum(totals.values())), seeds)
    return done


def _raked(totals: Mapping[str, float], columns: Sequence[float], seeds: Rows) -> Rows:
    empty = [0.0] * len(columns)
    least = _LEAST * sum(columns) / len(columns)
    table = {
        name: [
            max(seed, least if column else 0.0)
            for seed, column in zip(seeds.get(name, empty), columns, strict=True)
        ]
        for name in totals
    }
    for _ in range(_ROUNDS):
        for number, column in enumerate(columns):
            _scale_column(table, number, column)
        for name, row in table.items():
            table[name] = _scaled(row, totals[name])
    return table


def _scaled(row: Sequence[float], total: float) -> list[float]:
    """A row with another sum; even where it is empty."""
    found = sum(row)
    return [value * total / found for value in row] if found > 0 else [total / len(row)] * len(row)


def _scale_column(table: Rows, number: int, wanted: float) -> None:
    found = sum(row[number] for row in table.values())
    factor = wanted / found if found else 0.0
    for row in table.values():
        row[number] *= factor


def _sum(one: Sequence[float], other: Sequence[float]) -> list[float]:
    return [a + b for a, b in zip(one, other, strict=True)]


def _add(rows: Rows, name: str, row: Sequence[float]) -> None:
    rows[name] = _sum(rows[name], row) if name in rows else list(row)
