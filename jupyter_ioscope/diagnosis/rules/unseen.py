"""Fetches are off the CPU, and what for was not visible."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.cycles import Without
from jupyter_ioscope.diagnosis.facts import NOISE_SHARE, Facts, Gain
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding

# Voluntary over involuntary switches. A fetch that waits gives its core away for every item; one
# that only computes loses it now and then.
GIVES_AWAY = 5


def judge(facts: Facts) -> Finding | None:
    """Time off the CPU that no other rule can name. Without sampled states, counters of the
    fetches hint at the reason: pages read in, blocks read, cores given away."""
    if not facts.batches:
        return None
    try:
        gain = facts.gain_blocked("other")
    except NotMeasuredError:
        return _from_counters(facts, facts.gain(Without(off_cpu=1.0)))
    if not facts.part_ns("other"):
        return None
    return _finding(facts, gain, "blocked_unseen", "none", "")


def _from_counters(facts: Facts, gain: Gain) -> Finding | None:
    rows = facts.fetches
    samples = max(1, sum(row.samples for row in rows if row.samples > 0))
    faults = sum(row.major_faults for row in rows)
    own = sum(row.voluntary_switches for row in rows)
    lost = sum(row.involuntary_switches for row in rows)
    if gain.low < NOISE_SHARE:
        return None
    if faults >= samples / 10:
        hint, resource, cause = f"{faults:,} pages were read in.", "page_fault", "page_fault_io"
    elif any(row.read_blocks for row in rows):
        hint, resource, cause = "Data came from a device.", "disk", "disk_latency"
    elif own < GIVES_AWAY * max(1, lost):
        hint, resource, cause = "They often lost their core to others.", "none", "blocked_unseen"
    else:
        hint, resource, cause = "They gave their core away themselves.", "none", "blocked_unseen"
    if facts.alone and resource != "page_fault" and own >= GIVES_AWAY * max(1, lost):
        cause = "no_workers_latency_bound"
    return _finding(facts, gain, cause, resource, hint)


def _finding(facts: Facts, gain: Gain, cause: str, resource: str, hint: str) -> Finding:
    latency = cause == "no_workers_latency_bound"
    return finding(
        facts,
        gain,
        cause=cause,
        resource=resource,
        title="The loop waits for every sample itself, one after the other"
        if latency
        else "Fetches are off the CPU, and the reason was not visible",
        evidence=(f"{_words.who(facts)} {_words.spends(facts)} much time off the CPU. {hint}",),
        advice=_words.workers_that_wait(facts)
        if latency
        else "Look at the flame graph for what the fetches wait in; the report says why the states "
        "of threads were not visible.",
        toggles=("workers",),
        where=facts.where(),
    )


RULE = Rule("unseen", judge)
