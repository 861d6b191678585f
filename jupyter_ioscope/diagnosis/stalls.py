"""Finds outliers that come at even distances: checkpoints, shards, timers."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

# Members from which on even spacing is no chance: three gaps that agree.
LEAST_MEMBERS = 4
# Of the places where a member should be, this part must hold one.
_COVERED = 0.7
_CHANCE = 0.02
# More outliers than this are no outliers; the search looks at as many.
_MOST = 2_000
_NEIGHBOURS = 6
_CANDIDATES = 24


class Rhythm(NamedTuple):
    """Positions (indices into what was given) at a distance of `every` of each other."""

    every: float
    members: tuple[int, ...]


def rhythm(positions: Sequence[float], tolerance: float, grain: float = 0.0) -> Rhythm | None:
    """The even spacing that most of the sorted `positions` follow; None without one.

    A gap counts as even within `tolerance` (a fraction of it); one missing member in between is
    passed over, others beside them are left out. `grain` is the step in which positions are
    counted (1 for batches). What so many positions would show by chance is no rhythm.
    """
    places = list(positions[:_MOST])
    if len(places) < LEAST_MEMBERS or places[-1] <= places[0]:
        return None
    best: Rhythm | None = None
    for every in _candidates(places):
        slack = tolerance * every
        if every <= 2 * max(slack, grain / 2):
            continue
        members = _chain(places, every, slack)
        if len(members) < LEAST_MEMBERS or (best and len(members) <= len(best.members)):
            continue
        gaps = [places[b] - places[a] for a, b in pairwise(members)]
        covered = len(members) >= _COVERED * (sum(gaps) / every + 1)
        if covered and _by_chance(places, gaps, every, grain) < _CHANCE:
            best = Rhythm(float(median(gaps)), tuple(members))
    return best


def _by_chance(places: Sequence[float], gaps: Sequence[float], every: float, grain: float) -> float:
    """How many chains as long and as even would be expected of positions spread by chance: any
    pair may begin one, and every further member must fall into a narrow place (one of two, where
    members were passed over)."""
    steps = [round(gap / every) for gap in gaps]
    off = max(abs(gap - step * every) for gap, step in zip(gaps, steps, strict=True))
    density = len(places) / (places[-1] - places[0] + grain)
    hit = min(1.0, max(steps) * density * (2 * off + grain))
    return float(len(places) ** 2 * hit ** (len(gaps) - 1))


def _candidates(places: Sequence[float]) -> list[float]:
    """Distances that occur most often between near neighbours, the shorter first among equals."""
    counted: Counter[float] = Counter()
    for step in range(1, _NEIGHBOURS + 1):
        for here, there in zip(places, places[step:], strict=False):
            counted[float(f"{there - here:.2g}")] += 1
            counted[float(there - here)] += 1
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return [distance for distance, _ in ordered[:_CANDIDATES] if distance > 0]


def _chain(places: Sequence[float], every: float, slack: float) -> list[int]:
    """The longest run of positions of which each follows the one before after `every`, or after
    twice that."""
    length = [1] * len(places)
    before = [-1] * len(places)
    for index, place in enumerate(places):
        for times in (1, 2):
            at = _nearest(places, place - times * every, slack)
            if 0 <= at < index and length[at] + 1 > length[index]:
                length[index], before[index] = length[at] + 1, at
    index = max(range(len(places)), key=lambda i: length[i])
    members = []
    while index >= 0:
        members.append(index)
        index = before[index]
    return members[::-1]


def _nearest(places: Sequence[float], wanted: float, slack: float) -> int:
    """Index of the position nearest to `wanted`, -1 if none lies within `slack`."""
    at = bisect_left(places, wanted)
    near = [i for i in (at - 1, at) if 0 <= i < len(places) and abs(places[i] - wanted) <= slack]
    return min(near, key=lambda i: abs(places[i] - wanted)) if near else -1
