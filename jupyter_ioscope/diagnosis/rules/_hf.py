"""What the rules about transforms share: findings that are a part of the whole cell."""

from __future__ import annotations

from dataclasses import replace

from jupyter_ioscope.diagnosis.facts import Gain
from jupyter_ioscope.diagnosis.hf_facts import HfFacts
from jupyter_ioscope.diagnosis.rules._rule import finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.observed import Transform
from jupyter_ioscope.units import seconds

# Shorter transforms are no trouble, whatever part of a short cell they are.
LEAST_NS = 100_000_000


def of_cell(
    known: HfFacts,
    freed_ns: float,
    error_ns: float,
    *,
    cause: str,
    resource: str,
    title: str,
    evidence: tuple[str, ...],
    advice: str,
    refines: tuple[str, ...],
    toggles: tuple[str, ...] = (),
    where: str = "",
    harm: str = "",
) -> Finding:
    """A finding about time before the loop, or between its epochs: a share of the time from the
    start of the profile to the end of the loop."""
    whole = known.whole_ns
    found = finding(
        known.facts,
        Gain.of(min(1.0, freed_ns / whole), error_ns / whole),
        cause=cause,
        resource=resource,
        title=title,
        evidence=evidence,
        advice=advice,
        toggles=toggles,
        where=where,
        refines=refines,
        harm=harm,
    )
    return replace(found, cost_s=min(whole, freed_ns) / 1e9)


def called(row: Transform) -> str:
    """`map(tokenize)`, `flatten_indices()`."""
    return f"{row.kind}({row.function.replace('.<locals>', '')})"


def took_ns(row: Transform) -> int:
    return max(0, row.end_ns - row.start_ns)


def took_line(row: Transform) -> str:
    """`map(tokenize) took 12 s for 100,000 rows, 120 us a row.`"""
    took_s = took_ns(row) / 1e9
    if row.rows <= 0:
        return f"{called(row)} took {seconds(took_s)}."
    each = seconds(took_s / row.rows)
    return f"{called(row)} took {seconds(took_s)} for {row.rows:,} rows, {each} a row."
