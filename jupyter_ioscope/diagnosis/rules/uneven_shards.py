"""Some workers of a stream run out of data long before the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.out_of_order import effect_of_even_shares
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.records import Fetch
from jupyter_ioscope.units import percent, significant

# While all have data, torch asks them in turn: counts then differ by one. From 1.25 times the
# average on, the longest share decides when the epoch ends.
LEAST_APART = 2
LEAST_RATIO = 1.25

_GENERAL = (
    "decode_cpu",
    "no_workers_latency_bound",
    "disk_latency",
    "disk_bandwidth",
    "network_latency",
    "page_fault_io",
    "slow_collate",
    "blocked_unseen",
)


def judge(facts: Facts) -> Finding | None:
    """The recorded loop replayed against one in which the same batches are dealt out evenly."""
    if facts.alone or facts.workers < 2 or facts.loader.dataset_kind != "iterable":
        return None
    counts = _batches_of_workers(facts)
    if len(counts) < 2 or len(counts) < facts.workers or facts.workers_without_work:
        return None
    ratio = max(counts.values()) / (sum(counts.values()) / facts.workers)
    if max(counts.values()) - min(counts.values()) < LEAST_APART or ratio < LEAST_RATIO:
        return None
    effect = effect_of_even_shares(facts.replay, facts.workers)
    tail = _tail_fraction(facts)
    most, least = max(counts, key=lambda w: counts[w]), min(counts, key=lambda w: counts[w])
    return finding(
        facts,
        Gain.of(effect.freed * facts.reach, effect.error * facts.reach),
        cause="uneven_shards",
        resource="none",
        title="Some workers run out of data long before the others",
        evidence=(
            f"Worker {most} made {counts[most]:,} batches, worker {least} only {counts[least]:,}; "
            f"the longest share is {significant(ratio, 2)} times the average.",
            f"For {percent(tail)} of the loop's time at least one of the {facts.workers} workers "
            "had nothing left to do.",
            _shares(facts),
            _words.where_line(facts),
        ),
        advice="Share the data out by samples, not by files: make shards of about equal size and "
        f"many more of them than workers (a multiple of {facts.workers}), or let worker k take "
        "every num_workers-th sample from the k-th on.",
        where=facts.where(),
        refines=_GENERAL,
    )


def _batches_of_workers(facts: Facts) -> Counter[int]:
    """Of epochs that came to their end: an epoch that was left says nothing about shares."""
    whole = {row.epoch for row in facts.profile.epochs if row.end_ns is not None}
    return Counter(row.worker for row in facts.fetches if row.worker >= 0 and row.epoch in whole)


def _tail_fraction(facts: Facts) -> float:
    """Part of the loop between the last fetch of the first worker that ran out and the last of
    all, epoch by epoch."""
    tail_ns = 0
    for epoch in {row.epoch for row in facts.fetches}:
        last: dict[int, int] = {}
        for row in facts.fetches:
            if row.epoch == epoch and row.worker >= 0:
                last[row.worker] = max(last.get(row.worker, 0), row.end_ns)
        if last:
            tail_ns += max(last.values()) - min(last.values())
    return tail_ns / facts.loop.wall_ns


def _shares(facts: Facts) -> str:
    """`Busy: worker 0 92 %, worker 1 20 %.` Empty for many workers."""
    busy: dict[int, list[Fetch]] = {}
    for row in facts.fetches:
        if row.worker >= 0:
            busy.setdefault(row.worker, []).append(row)
    if len(busy) > 8:
        return ""
    parts = [f"worker {w} {percent(_busy_ns(busy[w]) / facts.loop.wall_ns)}" for w in sorted(busy)]
    return f"Fetching, of the loop's time: {', '.join(parts)}."


def _busy_ns(rows: Sequence[Fetch]) -> int:
    return sum(row.fetch_ns for row in rows)


RULE = Rule("uneven_shards", judge)
