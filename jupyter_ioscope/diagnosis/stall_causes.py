"""What outliers at even distances have in common."""

from __future__ import annotations

import os
from collections.abc import Sequence

from jupyter_ioscope.model.diagnosis import Likely
from jupyter_ioscope.model.profile import Profile

# Of the members' excess, on average, a cause must fit this much to be the stall's.
_LEAST = 0.25
# Files opened this many times as often as there were stalls still fit them.
_FITS = (0.6, 2.5)


def shared_causes(
    profile: Profile, phase: str, count: int, causes: Sequence[tuple[Likely, ...]], kind: str
) -> tuple[Likely, ...]:
    """Causes of several outliers of one stall as causes of the stall, likeliest first.

    `count` is the number of its members. Files are known without the time of their opening: opened
    about as often as the loop stalled, they fit.
    """
    fractions: dict[str, float] = {}
    texts: dict[str, tuple[float, str]] = {}
    for rows in causes:
        for row in rows:
            fractions[row.cause] = fractions.get(row.cause, 0.0) + row.fraction / len(causes)
            texts[row.cause] = max(texts.get(row.cause, (0.0, "")), (row.fraction, row.text))
    found = [
        Likely(cause, fraction, texts[cause][1])
        for cause, fraction in fractions.items()
        if fraction >= _LEAST
    ]
    if kind == "periodic":
        found += _opened(profile, phase, count)
    found.sort(key=lambda row: (-row.fraction, row.cause))
    return tuple(found[:3])


def _opened(profile: Profile, phase: str, count: int) -> list[Likely]:
    """Files that were opened about once a stall: written by steps, read by fetches."""
    writes = phase == "step"
    inside = "step" if writes else "fetch"
    rows = [
        row
        for row in profile.files
        if row.phase == inside and (row.mode != "r") == writes and row.opens > 0
    ]
    opens = sum(row.opens for row in rows)
    if not _FITS[0] * count <= opens <= _FITS[1] * count:
        return []
    name = os.path.basename(max(rows, key=lambda row: (row.size_bytes, row.path)).path)
    times = f"{opens:,} times" if opens > 1 else "once"
    if writes:
        return [
            Likely("written", 0.6, f"a file was opened to write about as often ({times}): {name}")
        ]
    return [Likely("opened", 0.5, f"a file was opened about as often ({times}): {name}")]
