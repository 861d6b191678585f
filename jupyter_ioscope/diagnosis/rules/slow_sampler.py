"""Choosing the samples of a batch takes the loop's own process long, for every batch."""

from __future__ import annotations

from statistics import fmean

from jupyter_ioscope.diagnosis.before import own_sampler
from jupyter_ioscope.diagnosis.cycles import Without
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.order_of_samples import order_part
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent, plus_minus, seconds

# Less than this part of what the main process does in `next()` is what any sampler takes.
_LEAST_PART = 0.1


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if the indices of its batches were there already."""
    if not facts.batches:
        return None
    part, error = order_part(facts)
    if part < _LEAST_PART:
        return None
    gain = facts.gain(Without(hand_over=part), Without(hand_over=error))
    batch_s = part * fmean([turn.main for epoch in facts.replay.epochs for turn in epoch]) / 1e9
    fetch_s = fmean([row.fetch_ns for row in facts.fetches]) / 1e9
    place = own_sampler(facts.profile)
    return finding(
        facts,
        gain,
        cause="first_batch_setup",
        resource="main_cpu",
        title="Choosing the samples of a batch takes "
        + ("longer than making it" if batch_s > fetch_s else "much of the loop's time"),
        evidence=(
            f"The sampler takes {seconds(batch_s)} for a batch; making it takes "
            f"{'' if facts.alone else 'a worker '}{seconds(fetch_s)}.",
            f"{plus_minus(100 * part, 100 * error, 1)} % of what the main process does inside "
            f"next() is asking the sampler{f', mostly in {place}' if place else ''}.",
            f"{percent(gain.share)} of the loop's time.",
        ),
        advice=_advice(place),
        where=place,
    )


def _advice(place: str) -> str:
    instead = f", instead of working it out for each batch in {place}" if place else ""
    return (
        "Compute once, in the sampler's __init__ or at the start of an epoch, what all batches "
        "need (weights, lengths, classes, as arrays), draw the indices of many batches in one "
        f"call, with replacement where that will do, and hand out slices of them{instead}. More "
        "workers do not help: samplers run in the loop's own process."
    )


RULE = Rule("slow_sampler", judge)
