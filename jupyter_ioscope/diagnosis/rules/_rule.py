"""What a rule is, and how it writes down what it found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.model.diagnosis import Finding


@dataclass(frozen=True)
class Rule:
    """One judgement: a pure function from facts to a finding, or None where it does not apply.

    `judge` may raise NotMeasuredError: the rule is then "unknown, because ...". Without a batch
    only rules that declare `without_batches` are asked.
    """

    name: str
    judge: Callable[[Facts], Finding | None]
    without_batches: bool = False


def finding(
    facts: Facts,
    gain: Gain,
    *,
    cause: str,
    resource: str,
    title: str,
    evidence: tuple[str, ...],
    advice: str,
    toggles: tuple[str, ...] = (),
    where: str = "",
    refines: tuple[str, ...] = (),
    harm: str = "",
) -> Finding:
    """A finding whose cost follows from its share of the loop."""
    return Finding(
        cause=cause,
        resource=resource,
        title=title,
        share=gain.share,
        low=gain.low,
        high=gain.high,
        cost_s=gain.share * facts.loop_s,
        evidence=tuple(line for line in evidence if line),
        advice=advice,
        toggles=toggles,
        where=where,
        refines=refines,
        harm=harm,
    )
