"""Steady throughput: what the loop gives once each epoch is under way."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.spread import block_ratio_error
from jupyter_ioscope.model.diagnosis import Throughput
from jupyter_ioscope.model.records import Batch

# An epoch's steady part must be at least this long to stand for it, else the epoch counts whole.
ENOUGH = 8


def throughput_of(facts: Facts) -> Throughput | None:
    """Samples per second of the main loader; None without batches.

    The first workers x prefetch + workers batches of an epoch come out of queues that were filled
    while nobody took anything (or are waited for while workers start): they are left out where
    enough remain. An epoch too short for that counts from `iter()` on. One standard error from
    blocks of neighbouring batches; with too few, as large as the value.
    """
    batches = facts.batches
    if not batches:
        return None
    samples: list[float] = []
    lengths: list[float] = []
    epochs: dict[int, list[Batch]] = {}
    for row in batches:
        epochs.setdefault(row.epoch, []).append(row)
    begins = {epoch.epoch: epoch.iter_start_ns for epoch in facts.profile.epochs}
    for number, rows in epochs.items():
        skip = warm_up(facts)
        if len(rows) < skip + ENOUGH:
            skip = 0
        before = rows[skip - 1].wait_end_ns if skip else begins.get(number, rows[0].wait_start_ns)
        for row in rows[skip:]:
            samples.append(row.samples if row.samples >= 0 else facts.samples_per_batch)
            lengths.append(max(0, row.wait_end_ns - before) / 1e9)
            before = row.wait_end_ns
    whole = sum(lengths)
    if whole <= 0:
        return None
    per_s = sum(samples) / whole
    error = block_ratio_error(samples, lengths)
    first = min(batches, key=lambda row: row.wait_end_ns)
    first_ns = first.wait_end_ns - begins.get(first.epoch, first.wait_start_ns)
    return Throughput(
        samples_per_s=per_s,
        error=per_s if error is None else error,
        batches_per_s=len(samples) / whole,
        first_batch_s=first_ns / 1e9,
        batches=len(samples),
        samples=int(sum(samples)),
    )


def warm_up(facts: Facts) -> int:
    """Batches at the start of an epoch that do not show the steady rate."""
    workers = facts.workers
    return workers * facts.loader.prefetch + workers if workers else 1
