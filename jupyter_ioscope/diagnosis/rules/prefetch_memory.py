"""Batches that wait to be used hold a large part of the memory."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.memory_facts import memory_budget_bytes
from jupyter_ioscope.diagnosis.out_of_order import effect_of_credits
from jupyter_ioscope.diagnosis.queued import Queued, queued
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.records import DEFAULT_PREFETCH
from jupyter_ioscope.units import bytes_text, percent, significant

# Of the memory there is. A quarter for batches that only wait leaves a run that grows no room.
LEAST_FRACTION = 0.25
# Fewer than that are needed to keep the consumer busy.
LEAST_QUEUED = 3
# Queues three times as deep as the loop needs are too deep already where they hold this much and
# half of all memory of the loop.
TOO_DEEP = 3
HARDLY = 0.03
DEEP_BYTES = 500_000_000
DEEP_FRACTION = 0.5


def judge(facts: Facts) -> Finding | None:
    """Memory is the harm: waiting batches take no time, so `share` is 0."""
    budget = memory_budget_bytes(facts.profile.machine)
    if facts.alone or not facts.batches or not budget:
        return None
    found = queued(facts.loader, facts.batches, facts.made)
    much = found.peak >= LEAST_QUEUED and found.peak_bytes >= LEAST_FRACTION * budget
    if not much and not _too_deep(facts, found):
        return None
    prefetch = facts.loader.prefetch
    enough = _enough(facts)
    return finding(
        facts,
        Gain(0.0, 0.0, 0.0),
        cause="prefetch_memory",
        resource="memory",
        title="Batches that wait to be used fill the memory",
        evidence=(
            f"Up to {found.peak} finished batches of {bytes_text(found.batch_bytes)} waited at a "
            f"time: {bytes_text(found.peak_bytes)}, {percent(found.peak_bytes / budget)} of the "
            "memory there is.",
            f"On average {significant(found.mean, 2)} waited; {facts.workers} workers and "
            f"prefetch_factor={prefetch} allow {found.most}.",
            f"With prefetch_factor={enough} the recorded loop would take less than "
            f"{percent(HARDLY)} longer."
            if enough < prefetch
            else "",
        ),
        advice=_advice(facts.workers, prefetch, enough),
        toggles=("prefetch",) if prefetch > 1 else ("workers",),
        harm="memory",
    )


def _too_deep(facts: Facts, found: Queued) -> bool:
    """Whether the user asked for more than the loop needs, and its memory is mostly that."""
    series = facts.profile.series
    memory = series.get("tree_pss_bytes") or series.get("tree_rss_bytes")
    used = max(memory.peak() if memory else 0.0, found.peak_bytes)
    large = found.peak_bytes >= max(DEEP_BYTES, DEEP_FRACTION * used)
    deep = TOO_DEEP * _enough(facts) <= (facts.loader.prefetch_factor or 0)
    return large and deep and found.peak >= LEAST_QUEUED


def _enough(facts: Facts) -> int:
    """The depth of queues, from torch's default on, with which the recorded loop would take hardly
    longer than it did."""
    now = facts.loader.prefetch
    depth = DEFAULT_PREFETCH
    while depth < now and effect_of_credits(facts.replay, facts.workers * depth) >= HARDLY:
        depth *= 2
    return min(depth, now)


def _advice(workers: int, prefetch: int, enough: int) -> str:
    less = (
        f"Use prefetch_factor={enough if enough < prefetch else prefetch - 1} (now {prefetch})"
        if prefetch > 1
        else f"Use fewer workers (now {workers})"
    )
    return (
        f"{less}, smaller batches, or a smaller form of the data (uint8 pixels, widened in the "
        "step). The loop does not need that many batches ready."
    )


RULE = Rule("prefetch_memory", judge)
