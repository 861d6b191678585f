"""How long one wait lasts at a place, from instants and from how often a thread let go of its core.

Two instants with one number of turns fall into one wait. The sampler draws one instant at random in
every period p, so the next instant after one that fell into a wait of length L falls into it too
with the chance (mean over where in the wait the first one fell)

    L^2 / (6 p^2)                                              L <= p
    (L - 5 p / 6 - (p^3 - (2 p - L)^3) / (6 p^2)) / L          p < L <= 2 p
    1 - p / L                                                  beyond

Where that happens often enough, the length follows from how often. Shorter waits are counted: the
time a thread was blocked between two neighbouring instants at a place, over the turns between them.
Waits elsewhere in between are counted along, so that short waits of several places that take turns
get a length between them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

from jupyter_ioscope.diagnosis.blocked_instants import Instant

_FEW_PAIRS = 3
_CLOSE = 4.0  # periods between two instants that belong together
_OFTEN = 0.1  # a wait of 0.8 periods: then ten of a hundred instants tell its length
_LONGEST = 1e4  # periods

_Place = TypeVar("_Place", bound=Hashable)


def mean_waits(
    seen: Sequence[Instant], places: Sequence[_Place], rate_hz: float, busy_fraction: float
) -> dict[_Place, float]:
    """Place -> mean length of one wait in seconds; places seen too seldom are left out.

    Args:
        seen: instants in order of time, only those with a number of turns count.
        places: the place of each.
        rate_hz: instants a second.
        busy_fraction: part of their wall time in which the threads were not blocked.
    """
    period_ns = 1e9 / rate_hz
    times: dict[_Place, float] = {}
    turns: dict[_Place, int] = {}
    pairs: dict[_Place, int] = {}
    again: dict[_Place, int] = {}
    last: dict[int, tuple[Instant, _Place]] = {}
    counts: dict[_Place, int] = {}
    for row, place in zip(seen, places, strict=True):
        if row.turn < 0:
            continue
        counts[place] = counts.get(place, 0) + 1
        before, last[row.pid] = last.get(row.pid), (row, place)
        if before is None or before[1] != place:
            continue
        gap_ns, waits = row.time_ns - before[0].time_ns, row.turn - before[0].turn
        if waits == 0:
            again[place] = again.get(place, 0) + 1
        if gap_ns <= _CLOSE * period_ns or waits == 0:
            times[place] = times.get(place, 0.0) + gap_ns * (1 - busy_fraction if waits else 1.0)
            turns[place] = turns.get(place, 0) + waits
            pairs[place] = pairs.get(place, 0) + 1
    found = {}
    for place, number in pairs.items():
        if number < _FEW_PAIRS:
            continue
        chance = again.get(place, 0) / counts[place]
        if chance >= _OFTEN:
            found[place] = length_for(chance) * period_ns / 1e9
        else:
            found[place] = times[place] / max(1, turns[place]) / 1e9
    return found


def length_for(chance: float) -> float:
    """Length of a wait, in periods, whose instants are followed by another in it that often."""
    low, high = 0.0, _LONGEST
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if chance_of(middle) < chance else (low, middle)
    return low


def chance_of(length: float) -> float:
    """`length` in periods; see the head of this file."""
    if length <= 1:
        return length**2 / 6
    if length <= 2:
        return (length - 5 / 6 - (1 - (2 - length) ** 3) / 6) / length
    return 1 - 1 / length
