"""A batch as the consumer keeps it: a row of numbers. CPU of the rows read by the clock only.

Reading a thread's CPU time is a system call. Batches that are shorter than `SHORT_NS` come in their
thousands: of eight that follow each other one is read in full, with the CPU time at its three ends,
the others by the clock only. What all of these used together is exact, because the full ones before
and after them tell it; how it falls on each is estimated, see `fill_short`.
"""

from __future__ import annotations

from collections.abc import Iterable

# Row: epoch, loader, wait_start, wait_end, step_end, wait_cpu, step_cpu, samples, worker, task,
# end_cpu, thread. `end_cpu` is the thread's CPU time when the batch came.
WIDTH = 12
EPOCH, WAIT_START, WAIT_END, STEP_END, WAIT_CPU, STEP_CPU, END_CPU, THREAD = (
    0,
    2,
    3,
    4,
    5,
    6,
    10,
    11,
)

SHORT_NS = 500_000  # the two system calls of such a batch take about 2 us, 0.4 % of it or more
SHORT_LIGHT = 7
NOT_READ = -1  # in place of `end_cpu`

Row = list[int]


def fill_short(rows: Iterable[Row]) -> None:
    """Give the rows whose CPU time was not read theirs, in place.

    The CPU between two full rows of an epoch is exact. It falls on the rows between them in
    proportion to their times, waits and steps as dear as those of the full row before, and never
    more than the time a wait or step took. Where no full row of the same thread follows, the
    proportions alone count.
    """
    before: dict[int, Row] = {}
    short: dict[int, list[Row]] = {}
    for row in rows:
        epoch = row[EPOCH]
        if row[END_CPU] == NOT_READ:
            short.setdefault(epoch, []).append(row)
            continue
        between = short.pop(epoch, None)
        if between:
            _fill(between, before[epoch], _cpu_between(before[epoch], between, row))
        before[epoch] = row
    for epoch, between in short.items():
        _fill(between, before[epoch], None)


def _cpu_between(before: Row, between: list[Row], after: Row) -> int | None:
    """CPU from the end of the step of one full row to the begin of the wait of the next."""
    if {row[THREAD] for row in (before, *between, after)} != {after[THREAD]}:
        return None
    used_ns = after[END_CPU] - after[WAIT_CPU] - before[END_CPU] - before[STEP_CPU]
    return max(0, used_ns)


def _fill(between: list[Row], like: Row, total_ns: int | None) -> None:
    places = [(row, column) for row in between for column in (WAIT_CPU, STEP_CPU)]
    times = [_time_ns(*place) for place in places]
    rates = {column: _rate(like, column) for column in (WAIT_CPU, STEP_CPU)}
    parts = [time_ns * rates[place[1]] for place, time_ns in zip(places, times, strict=True)]
    if total_ns is not None:
        factor = total_ns / (sum(parts) or 1.0)
        parts = [min(part * factor, time_ns) for part, time_ns in zip(parts, times, strict=True)]
        # What did not fit where it was expected was used in the rest of the time.
        room = sum(times) - sum(parts)
        more = min(1.0, (total_ns - sum(parts)) / room) if room > 0 else 0.0
        parts = [part + (time - part) * more for part, time in zip(parts, times, strict=True)]
    for (row, column), part in zip(places, parts, strict=True):
        row[column] = round(part)


def _time_ns(row: Row, column: int) -> int:
    if column == WAIT_CPU:
        return max(0, row[WAIT_END] - row[WAIT_START])
    return max(0, row[STEP_END] - row[WAIT_END]) if row[STEP_END] >= 0 else 0


def _rate(row: Row, column: int) -> float:
    return min(1.0, max(0, row[column]) / max(1, _time_ns(row, column)))
