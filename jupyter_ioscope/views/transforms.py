"""Transforms of datasets as a table: how often each came from the cache, and why it did not."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_ioscope.model.observed import Transform
from jupyter_ioscope.units import seconds
from jupyter_ioscope.views.shapes import ITransform
from jupyter_ioscope.views.words import clean

_MOST = 12


def transform_rows(transforms: Sequence[Transform]) -> list[ITransform]:
    """One row a function, what took longest first; of the reasons for misses the newest."""
    groups: dict[tuple[str, str], list[Transform]] = {}
    for row in transforms:
        groups.setdefault((row.kind, row.function), []).append(row)
    ordered = sorted(groups.values(), key=lambda rows: -_took_ns(rows))
    return [_row(rows) for rows in ordered[:_MOST]]


def _row(rows: Sequence[Transform]) -> ITransform:
    first = rows[0]
    known = [row.rows for row in rows if row.rows >= 0]
    reasons = [row.why_missed for row in rows if row.why_missed]
    function = first.function.replace(".<locals>", "")
    return ITransform(
        name=clean(f"{first.kind}({function})", 80),
        hits=f"{sum(row.cached for row in rows)} of {len(rows)}",
        rows=f"{sum(known):,}" if known else "",
        time=seconds(_took_ns(rows) / 1e9),
        why=clean(reasons[-1] if reasons else "", 240),
    )


def _took_ns(rows: Sequence[Transform]) -> int:
    return sum(max(0, row.end_ns - row.start_ns) for row in rows)
