"""The verdict in one sentence with numbers, and one or two more."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent, plus_minus, seconds

# Fewer batches than this do not show a steady loop.
FEW_BATCHES = 8


def headline(facts: Facts, findings: Sequence[Finding]) -> str:
    """One sentence. It names the loop's waiting, the number everything else explains."""
    profile = facts.profile
    if not profile.loaders and not profile.epochs and not profile.batches:
        return "No loader was iterated in this cell."
    if not profile.batches:
        return "The loader gave no batch."
    count = len(profile.batches)
    if count < FEW_BATCHES:
        only = "one batch" if count == 1 else f"{count} batches"
        if findings and findings[0].resource == "start_up":
            spent = seconds(findings[0].cost_s)
            return f"{only[0].upper()}{only[1:]} came; {spent} passed before the first was fetched."
        return f"Only {only} came: too few to say what limits the loop."
    waited = f"the loop waited for data {percent(facts.waits.wait_fraction)} of the time"
    if findings and findings[0].cause == "not_loader_bound" and facts.waits.wait_fraction < 0.5:
        return f"Nothing to fix here: your own step is the limit; {waited}."
    return f"{waited[0].upper()}{waited[1:]}."


def detail(facts: Facts, findings: Sequence[Finding], apart: bool, advice: str) -> str:
    """What holds the loop back, with its evidence, and how far behind the next cause is."""
    if not facts.profile.batches:
        ended = facts.profile.ended_by
        return f"The cell ended with {ended}." if ended else ""
    if not findings:
        return "No single cause stands out: none would free 5 % of the loop's time."
    first = findings[0]
    lines = [f"{first.title}: {_freed(first)}."]
    if first.cause != "not_loader_bound":
        lines += first.evidence[:1]
    if first.where and not any(first.where in line for line in lines):
        lines += [line for line in first.evidence if first.where in line][:1]
    if len(findings) > 1:
        lines.append(_next(first, findings[1], apart, advice))
    return " ".join(lines)


def _freed(row: Finding) -> str:
    error = 100 * (row.high - row.low) / 2
    if error > 10:
        low, high = 100 * row.low, percent(row.high, 0)
        return f"without it the loop would take {low:.0f} to {high} less time"
    number = plus_minus(100 * row.share, error, 1) if error >= 0.5 else f"{100 * row.share:.0f}"
    return f"without it the loop would take {number} % less time"


def _next(first: Finding, second: Finding, apart: bool, advice: str) -> str:
    title = second.title[0].lower() + second.title[1:]
    if not apart:
        return f"It cannot be told apart from the next cause ({title}). {advice}".strip()
    far = "far behind" if second.share < 0.5 * first.share else "close behind"
    return f"Next cause, {far}: {title}."
