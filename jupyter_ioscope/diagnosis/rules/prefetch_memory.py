"""Batches that wait to be used hold a large part of the memory."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.memory_facts import memory_budget_bytes
from jupyter_ioscope.diagnosis.queued import queued
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import bytes_text, percent, significant

# Of the memory there is. A quarter for batches that only wait leaves a run that grows no room.
LEAST_FRACTION = 0.25
# Fewer than that are needed to keep the consumer busy.
LEAST_QUEUED = 3


def judge(facts: Facts) -> Finding | None:
    """Memory is the harm: waiting batches take no time, so `share` is 0."""
    budget = memory_budget_bytes(facts.profile.machine)
    if facts.alone or not facts.batches or not budget:
        return None
    found = queued(facts.loader, facts.batches, facts.made)
    if found.peak < LEAST_QUEUED or found.peak_bytes < LEAST_FRACTION * budget:
        return None
    prefetch = facts.loader.prefetch_factor or 2
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
        ),
        advice=_advice(facts.workers, prefetch),
        toggles=("prefetch",) if prefetch > 1 else ("workers",),
        harm="memory",
    )


def _advice(workers: int, prefetch: int) -> str:
    less = (
        f"Use a smaller prefetch_factor (now {prefetch})"
        if prefetch > 1
        else f"Use fewer workers (now {workers})"
    )
    return (
        f"{less}, smaller batches, or a smaller form of the data (uint8 pixels, widened in the "
        "step). The loop does not need that many batches ready."
    )


RULE = Rule("prefetch_memory", judge)
