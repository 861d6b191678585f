"""What rules about cells without a recorded loader share."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.spread import Z95
from jupyter_ioscope.diagnosis.unrecorded import Unrecorded
from jupyter_ioscope.model.diagnosis import Finding

# A cell that spends less on data than this has another main occupation.
LEAST_PART = 0.25


def unrecorded(facts: Facts) -> Unrecorded | None:
    """The numbers of the stretch; None where a loader was recorded, or the cell was short."""
    found = Unrecorded(facts.profile)
    return found if found.applies else None


def spread_over_cores(cell: Unrecorded, threads: float | None = None) -> float:
    """Part of a single core's work that is saved when all cores (or `threads` of them) share it."""
    return 1.0 - 1.0 / max(1.0, min(cell.cores, threads or cell.cores))


def of_cell(
    cell: Unrecorded,
    share: float,
    error: float,
    *,
    cause: str,
    resource: str,
    title: str,
    evidence: tuple[str, ...],
    advice: str,
    refines: tuple[str, ...] = (),
) -> Finding:
    """A finding about the whole cell: its share is a part of the cell's time."""
    place = cell.place
    seen = f"Seen mostly in {place}." if place else ""
    return Finding(
        cause=cause,
        resource=resource,
        title=title,
        share=share,
        low=max(0.0, share - Z95 * error),
        high=min(1.0, share + Z95 * error),
        cost_s=share * cell.profile.wall_s,
        evidence=tuple(line for line in (*evidence, seen) if line),
        advice=advice,
        where=place,
        refines=refines,
    )
