"""Turns the records of one loader into what the replay needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from jupyter_ioscope.diagnosis.cycles import Replay, Turn
from jupyter_ioscope.diagnosis.loader_model import SHORT_TRANSIT_NS
from jupyter_ioscope.model.records import Batch, Fetch, LoaderInfo

# Replays run in Python, a few times a rule: more batches add nothing to shares of a few percent.
MOST_BATCHES = 4_000
# Waking up and being scheduled takes less; a consumer blocked for longer waited for something.
LEAST_BLOCKED_NS = 1_000_000


def replay_of(
    loader: LoaderInfo,
    batches: Sequence[Batch],
    made: Mapping[int, Fetch],
    put_ns: float,
    feeder_ns: float = 0.0,
    inside_ns: Mapping[int, int] | None = None,
) -> Replay | None:
    """Those `batches` of a loader whose fetches are known, newest `MOST_BATCHES`; None without any.

    `put_ns` is what a worker's main thread spends after each fetch, `feeder_ns` the CPU that its
    feeder needs for it. `inside_ns` are loops over other loaders inside steps, by the number of the
    batch: they are no part of the step.
    """
    inside_ns = inside_ns or {}
    known = [row for row in batches if row.batch in made]
    known = known[-MOST_BATCHES:]
    if not known:
        return None
    times = [row.wait_end_ns - made[row.batch].end_ns - row.wait_cpu_ns
             for row in known if arrived_in_wait(row, made[row.batch])]  # fmt: skip
    usual = max(0.0, float(median(times))) if times else 0.0
    epochs: dict[int, list[Turn]] = {}
    for row in known:
        fetch = made[row.batch]
        # A worker's feeder sends a batch by the time the next one is finished, see `loader_model`:
        # where few batches were waited for, `usual` is that of the late ones.
        sent_by = SHORT_TRANSIT_NS + fetch.fetch_ns + feeder_ns
        turn = _turn(row, fetch, min(usual, sent_by), put_ns)
        if row.batch in inside_ns:
            turn = turn._replace(step=max(0.0, turn.step - inside_ns[row.batch]))
        epochs.setdefault(row.epoch, []).append(turn)
    workers = loader.num_workers or len({row.worker for row in known if row.worker >= 0})
    credits = workers * loader.prefetch
    length_ns = _length(known, made) - sum(inside_ns.get(row.batch, 0) for row in known)
    return Replay(tuple(tuple(turns) for turns in epochs.values()), credits, max(1, length_ns))


def arrived_in_wait(row: Batch, fetch: Fetch) -> bool:
    """Whether a worker's batch reached the consumer while it waited in `next()`.

    So it is when the fetch ended in the wait. A batch may also be finished and still be on its
    way: the worker's feeder thread needs a core, and the GIL, which a fetch blocked in a page fault
    keeps. Then the consumer is blocked, hardly uses CPU, and the fetch ended not long before; a
    batch that was finished long ago lay in the queue, and what was spent on it is the consumer's.
    """
    if fetch.end_ns > row.wait_start_ns:
        return True
    blocked_ns = row.wait_ns - row.wait_cpu_ns
    short = blocked_ns < LEAST_BLOCKED_NS or row.wait_cpu_ns > 0.2 * row.wait_ns
    return not short and row.wait_start_ns - fetch.end_ns <= 5 * blocked_ns


def _turn(row: Batch, fetch: Fetch, usual: float, put_ns: float) -> Turn:
    """`usual` is the transit of a batch whose own transit did not show: it was there already."""
    cpu = float(min(fetch.cpu_ns, fetch.fetch_ns))
    off_cpu = fetch.fetch_ns - cpu
    step = float(row.step_ns)
    if fetch.worker < 0:
        main = float(max(0, row.wait_ns - fetch.fetch_ns))
        return Turn(-1, cpu, off_cpu, 0.0, step, main, 0.0)
    if arrived_in_wait(row, fetch):
        delay = float(max(0, row.wait_end_ns - fetch.end_ns))
        main = min(delay, float(row.wait_cpu_ns))
        transit = delay - main
    else:
        main = float(row.wait_ns)
        transit = min(usual, float(row.wait_start_ns - fetch.end_ns))
    # the put is part of the worker's service already
    return Turn(fetch.worker, cpu, off_cpu, put_ns, step, main, max(0.0, transit - put_ns))


def _length(known: Sequence[Batch], made: Mapping[int, Fetch]) -> int:
    """What the epochs really took, from the first fetch (or wait) to the end of the last step."""
    spans: dict[int, tuple[int, int]] = {}
    for row in known:
        start = min(made[row.batch].start_ns, row.wait_end_ns)
        first, last = spans.get(row.epoch, (start, row.step_end_ns))
        spans[row.epoch] = (min(first, start), max(last, row.step_end_ns))
    return sum(last - first for first, last in spans.values())
