"""A model of torch's loader: how fast recorded batches would come under another setting.

For batch k, N workers, W = N x prefetch credits, worker service S, consumer step C, main-process
cost m, transit t (worker to the consumer's door):

    f[k] = max(f[batch before it of the same worker], y[k-W]) + S[k]
    y[k] = max(y[k-1] + C[k-1], f[k] + t[k]) + m[k]

Without workers a batch takes S + m + C. A worker's service is its time off the core plus its CPU
time; when all threads together want more cores than there are, every CPU time grows by the same
factor until they fit (processor sharing). Three cycles explain the result: S / N (workers), C + m
(consumer), (S + t) / W (credits): workers buy mean rate, prefetch buys only the absorption of
variance.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from jupyter_ioscope.model.prediction import Setting

# A model run this much longer than what is left out at its start shows the steady rate.
_ROUNDS = 6
_LEAST_BATCHES = 120
_MOST_BATCHES = 6_000
SHORT_TRANSIT_NS = 300_000.0  # of a batch whose worker has nothing else to do
_MOST_STRETCH = 256.0
_BISECTIONS = 24


class Piece(NamedTuple):
    """One batch, with nothing in it that depends on how many others run. All times in ns.

    `put` is the worker's own CPU after the fetch, `feeder` that of its feeder thread.
    """

    samples: float
    cpu: float
    off_cpu: float
    put: float
    feeder: float
    step_cpu: float
    step_off: float
    main: float
    transit: float


def samples_per_s(pieces: Sequence[Piece], setting: Setting, cores: float) -> float:
    """Steady samples per second of `pieces`, over and over, on `cores` cores; 0 without any."""
    if not pieces:
        return 0.0
    stretch = _stretch(pieces, setting, cores)
    samples, length_ns = _steady(pieces, setting, stretch)
    return samples / length_ns * 1e9 if length_ns > 0 else 0.0


def _stretch(pieces: Sequence[Piece], setting: Setting, cores: float) -> float:
    """By how much CPU times grow so that what runs fits on the cores."""
    if _demand(pieces, setting, 1.0) <= cores:
        return 1.0
    low, high = 1.0, 2.0
    while _demand(pieces, setting, high) > cores and high < _MOST_STRETCH:
        low, high = high, 2 * high
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _demand(pieces, setting, middle) > cores:
            low = middle
        else:
            high = middle
    return high


def _demand(pieces: Sequence[Piece], setting: Setting, stretch: float) -> float:
    """Cores in use on average: the CPU that the batches need (not stretched) per time."""
    samples, length_ns = _steady(pieces, setting, stretch)
    each = sum(piece.samples for piece in pieces)
    if length_ns <= 0 or each <= 0:
        return 0.0
    handed = setting.workers > 0
    cpu = sum(p.cpu + p.step_cpu + (p.put + p.feeder + p.main if handed else 0.0) for p in pieces)
    return cpu * (samples / each) / length_ns


def _steady(pieces: Sequence[Piece], setting: Setting, stretch: float) -> tuple[float, float]:
    """(samples, ns) of a run, its start left out."""
    workers = setting.workers
    if not workers:
        length = sum((p.cpu + p.step_cpu) * stretch + p.off_cpu + p.step_off for p in pieces)
        return sum(piece.samples for piece in pieces), length
    credits = workers * max(1, setting.prefetch)
    skip = credits + workers
    count = min(_MOST_BATCHES, max(len(pieces), _ROUNDS * skip + _LEAST_BATCHES))
    run = _in_order if setting.in_order else _as_they_come
    order, taken = run(pieces, setting, stretch, count)
    samples = sum(pieces[k % len(pieces)].samples for k in order[skip:])
    return samples, taken[-1] - taken[skip - 1]


def _service(piece: Piece, stretch: float) -> float:
    return (piece.cpu + piece.put) * stretch + piece.off_cpu


def _transit(piece: Piece, service: float, busy: bool) -> float:
    """A worker's feeder thread needs the GIL, which its main thread keeps for a switch interval
    while it makes the next batch, and leaves alone while it has none to make: a batch is on its way
    when the next one is finished, at the latest."""
    return min(piece.transit, SHORT_TRANSIT_NS + (service if busy else 0.0))


def _in_order(
    pieces: Sequence[Piece], setting: Setting, stretch: float, count: int
) -> tuple[range, list[float]]:
    """(batches in the order they arrive, when the consumer had each)."""
    workers, credits = setting.workers, setting.workers * max(1, setting.prefetch)
    free = [0.0] * workers
    taken: list[float] = []
    now = 0.0
    for k in range(count):
        piece = pieces[k % len(pieces)]
        asked = taken[k - credits] if k >= credits else 0.0
        worker = k % workers
        service = _service(piece, stretch)
        free[worker] = ready = max(free[worker], asked) + service
        following = k + workers - credits  # taking this one asks for the worker's next
        busy = following < 0 or (following < k and taken[following] <= ready)
        got = max(now, ready + _transit(piece, service, busy)) + piece.main * stretch
        taken.append(got)
        now = got + piece.step_cpu * stretch + piece.step_off
    return range(count), taken


def _as_they_come(
    pieces: Sequence[Piece], setting: Setting, stretch: float, count: int
) -> tuple[list[int], list[float]]:
    """The same with `in_order=False`: the consumer takes whichever batch is there first, and the
    next task goes to the next worker that has fewer than `prefetch` of them."""
    workers, prefetch = setting.workers, max(1, setting.prefetch)
    free = [0.0] * workers
    waiting = [0] * workers
    done: list[tuple[float, int, int]] = []
    order: list[int] = []
    taken: list[float] = []
    given = turn = 0
    now = 0.0

    def give(asked: float) -> None:
        nonlocal given, turn
        while waiting[turn % workers] >= prefetch:
            turn += 1
        worker = turn % workers
        piece = pieces[given % len(pieces)]
        service = _service(piece, stretch)
        free[worker] = ready = max(free[worker], asked) + service
        # Whether it has another one to make by then is not known yet: it mostly has.
        heapq.heappush(done, (ready + _transit(piece, service, True), given, worker))
        waiting[worker] += 1
        given, turn = given + 1, turn + 1

    for _ in range(min(count, workers * prefetch)):
        give(0.0)
    while done:
        there, k, worker = heapq.heappop(done)
        piece = pieces[k % len(pieces)]
        got = max(now, there) + piece.main * stretch
        order.append(k)
        taken.append(got)
        waiting[worker] -= 1
        if given < count:
            give(got)
        now = got + piece.step_cpu * stretch + piece.step_off
    return order, taken
