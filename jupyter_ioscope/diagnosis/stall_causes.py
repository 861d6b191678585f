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
# Other programs and the machine keep no count of this loop's batches: what comes every so many of
# them they make longer, but do not cause.
_NOT_OURS = ("cores_taken", "run_queue", "pressure", "throttled")
_MAKES_LONGER = 0.6


def shared_causes(
    profile: Profile, phase: str, count: int, causes: Sequence[tuple[Likely, ...]], every: float
) -> tuple[Likely, ...]:
    """Causes of several outliers of one stall as causes of the stall, likeliest first.

    `count` is the number of its members, `every` their distance in batches (0 where they follow no
    count). Files are known without the time of their opening: opened about as often as the loop
    stalled, they fit.
    """
    fractions: dict[str, float] = {}
    texts: dict[str, tuple[float, str]] = {}
    for rows in causes:
        for row in rows:
            fractions[row.cause] = fractions.get(row.cause, 0.0) + row.fraction / len(causes)
            texts[row.cause] = max(texts.get(row.cause, (0.0, "")), (row.fraction, row.text))
    if every:
        for cause in _NOT_OURS:
            fractions[cause] = _MAKES_LONGER * fractions.get(cause, 0.0)
    found = [
        Likely(cause, min(1.0, fraction), texts[cause][1])
        for cause, fraction in fractions.items()
        if fraction >= _LEAST
    ]
    if every:
        found = _once([*_opened(profile, phase, count), *found])
    found.sort(key=lambda row: (-row.fraction, row.cause))
    return tuple(found[:3])


def _once(found: Sequence[Likely]) -> list[Likely]:
    """Of each cause the likeliest."""
    best: dict[str, Likely] = {}
    for row in found:
        if row.cause not in best or row.fraction > best[row.cause].fraction:
            best[row.cause] = row
    return list(best.values())


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
