"""Turns the records of one loader into what the replay needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from jupyter_ioscope.diagnosis.cycles import Replay, Turn
from jupyter_ioscope.model.records import Batch, Fetch, LoaderInfo

# Replays run in Python, a few times a rule: more batches add nothing to shares of a few percent.
MOST_BATCHES = 4_000


def replay_of(
    loader: LoaderInfo,
    batches: Sequence[Batch],
    made: Mapping[int, Fetch],
    put_ns: float,
) -> Replay | None:
    """Those `batches` of a loader whose fetches are known, newest `MOST_BATCHES`; None without any.

    `put_ns` is what a worker's main thread spends after each fetch. A batch that was ready when
    the consumer asked shows the main-process cost, one that was not shows the delay; the value
    that a batch does not show is the median of those that do.
    """
    known = [row for row in batches if row.batch in made]
    known = known[-MOST_BATCHES:]
    if not known:
        return None
    late = [row for row in known if made[row.batch].end_ns > row.wait_start_ns]
    delays = [float(max(0, row.wait_end_ns - made[row.batch].end_ns)) for row in late]
    usual_delay = median(delays) if delays else 0.0
    epochs: dict[int, list[Turn]] = {}
    for row in known:
        turn = _turn(row, made[row.batch], usual_delay, put_ns)
        epochs.setdefault(row.epoch, []).append(turn)
    workers = loader.num_workers or len({row.worker for row in known if row.worker >= 0})
    credits = workers * (loader.prefetch_factor or 2)
    return Replay(tuple(tuple(turns) for turns in epochs.values()), credits, _length(known, made))


def _turn(row: Batch, fetch: Fetch, usual_delay: float, put_ns: float) -> Turn:
    cpu = float(min(fetch.cpu_ns, fetch.fetch_ns))
    off_cpu = fetch.fetch_ns - cpu
    if fetch.worker < 0:
        main = float(max(0, row.wait_ns - fetch.fetch_ns))
        return Turn(-1, cpu, off_cpu, 0.0, float(row.step_ns), main, 0.0)
    if fetch.end_ns > row.wait_start_ns:
        delay = float(max(0, row.wait_end_ns - fetch.end_ns))
        main = min(delay, float(row.wait_cpu_ns))
    else:
        main = float(row.wait_ns)
        delay = max(main, usual_delay)
    delay = max(0.0, delay - put_ns)  # the put is part of the worker's service already
    return Turn(fetch.worker, cpu, off_cpu, put_ns, float(row.step_ns), main, delay)


def _length(known: Sequence[Batch], made: Mapping[int, Fetch]) -> int:
    """What the epochs really took, from the first fetch (or wait) to the end of the last step."""
    spans: dict[int, tuple[int, int]] = {}
    for row in known:
        start = min(made[row.batch].start_ns, row.wait_end_ns)
        first, last = spans.get(row.epoch, (start, row.step_end_ns))
        spans[row.epoch] = (min(first, start), max(last, row.step_end_ns))
    return sum(last - first for first, last in spans.values())
