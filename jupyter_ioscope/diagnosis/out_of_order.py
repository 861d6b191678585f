"""What a loader would gain by handing out whatever batch is ready, and how much it waits for order.

Torch gives every worker a queue of `prefetch` tasks. In order, the consumer waits for one certain
batch. Out of order (`in_order=False`) it takes the first that is ready, and the worker it came from
gets the next task.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from jupyter_ioscope.diagnosis.cycles import Effect, Replay, Turn, Without, in_order, service
from jupyter_ioscope.diagnosis.spread import BLOCKS, UNKNOWN_FRACTION_ERROR, ratio_error
from jupyter_ioscope.model.records import Batch, Fetch


class Order(NamedTuple):
    """Waiting of the consumer while a batch behind the one it waited for was already finished."""

    behind_ns: int
    waited_ns: int
    batches: int  # how often


def waited_for_order(batches: Sequence[Batch], made: Mapping[int, Fetch]) -> Order:
    """Of each wait, the part after the first of the later batches of the epoch was finished.

    A worker's first batch is passed over: opening files is start-up, not a slow sample.
    """
    behind_ns = waited_ns = count = 0
    known = [(row, made[row.batch]) for row in batches if row.batch in made]
    first = {fetch.pid: row.batch for row, fetch in reversed(known)}
    soonest_ns: int | None = None  # end of the first that is finished of the epoch's later ones
    epoch = -1
    for row, fetch in reversed(known):
        if row.epoch != epoch:
            epoch, soonest_ns = row.epoch, None
        waited_ns += row.wait_ns
        ready_ns = row.wait_end_ns if soonest_ns is None else soonest_ns
        late_ns = min(row.wait_end_ns, fetch.end_ns) - max(row.wait_start_ns, ready_ns)
        if late_ns > 0 and first[fetch.pid] != row.batch:
            behind_ns += late_ns
            count += 1
        soonest_ns = fetch.end_ns if soonest_ns is None else min(soonest_ns, fetch.end_ns)
    return Order(behind_ns, waited_ns, count)


def tail_ratio(fetches: Sequence[Fetch], held_up: float | None) -> float:
    """How many times the usual fetch the slowest twentieth takes (95th percentile over median),
    first fetches left out, and what a fetch only waited for a core.

    `held_up` is that part of the fetches' time off the CPU, None where it was not seen: then the
    two kinds of switches divide it. A thread that blocks gives its core away, one that is held up
    loses it.
    """
    seen: set[int] = set()
    times = []
    for row in sorted(fetches, key=lambda fetch: fetch.start_ns):
        if row.pid in seen:
            switches = max(1, row.voluntary_switches + row.involuntary_switches)
            held = row.involuntary_switches / switches if held_up is None else held_up
            cpu_ns = min(row.cpu_ns, row.fetch_ns)
            times.append(cpu_ns + (row.fetch_ns - cpu_ns) * (1 - held))
        seen.add(row.pid)
    if not times:
        return 1.0
    times.sort()
    middle = times[len(times) // 2]
    return times[min(len(times) - 1, int(0.95 * len(times)))] / middle if middle else 1.0


def effect_of_any_order(replay: Replay, by_worker: bool) -> Effect:
    """The loop with batches in order against the loop with whatever is ready.

    `by_worker`: a worker makes its own batches only (a stream), not any of them.
    """
    before, after = [], []
    for turns in replay.epochs:
        before += _stretches(in_order(turns, replay.credits, Without()))
        after += _stretches(_any_order(turns, replay.credits, by_worker))
    return _compared(before, after)


def effect_of_even_shares(replay: Replay, workers: int) -> Effect:
    """The loop against one in which every worker makes as many of its batches as any other."""
    before, after = [], []
    for turns in replay.epochs:
        dealt = [turn._replace(worker=number % workers) for number, turn in enumerate(turns)]
        before += _stretches(in_order(turns, replay.credits, Without()))
        after += _stretches(in_order(dealt, replay.credits, Without()))
    return _compared(before, after)


def effect_of_prefetch(replay: Replay, times: int) -> float:
    """Part of the loop that `times` as many batches prefetched, still in order, would free."""
    return max(0.0, -effect_of_credits(replay, times * replay.credits))


def effect_of_credits(replay: Replay, credits: int) -> float:
    """How much longer the loop takes with so many batches under way, as a part of its length;
    below 0 where it takes less."""
    other = replace(replay, credits=credits)
    before, after = (
        sum(in_order(turns, some.credits, Without())[-1] for turns in some.epochs if turns)
        for some in (replay, other)
    )
    return after / before - 1.0 if before > 0 else 0.0


def _any_order(turns: Sequence[Turn], credits: int, by_worker: bool) -> list[float]:
    """End of every step, in ns since the first task was given out."""
    workers = sorted({turn.worker for turn in turns})
    shared = deque(turns)
    own = {w: deque(turn for turn in turns if turn.worker == w) for w in workers}
    free = dict.fromkeys(workers, 0.0)
    ready: list[tuple[float, int, float, float]] = []  # when, worker, main, step

    def give(worker: int, asked: float) -> None:
        queue = own[worker] if by_worker else shared
        if queue:
            turn = queue.popleft()
            free[worker] = max(free[worker], asked) + service(turn, Without())
            entry = (free[worker] + turn.transit, worker, turn.main, turn.step)
            heapq.heappush(ready, entry)

    for number in range(credits):
        give(workers[number % len(workers)], 0.0)
    now, ends = 0.0, []
    while ready:
        when, worker, main, step = heapq.heappop(ready)
        got = max(now, when) + main
        give(worker, got)
        now = got + step
        ends.append(now)
    return ends


def _compared(before: Sequence[float], after: Sequence[float]) -> Effect:
    whole = sum(before)
    if whole <= 0:
        return Effect(0.0, UNKNOWN_FRACTION_ERROR)
    error = ratio_error(after, before)
    freed = max(0.0, 1.0 - sum(after) / whole)
    return Effect(freed, UNKNOWN_FRACTION_ERROR if error is None else error)


def _stretches(ends: Sequence[float]) -> list[float]:
    """Lengths of consecutive stretches of about equally many batches."""
    size = max(2, len(ends) // BLOCKS)
    marks = [*range(size - 1, len(ends) - size, size), len(ends) - 1] if ends else []
    lengths, before = [], 0.0
    for mark in marks:
        lengths.append(ends[mark] - before)
        before = ends[mark]
    return lengths
