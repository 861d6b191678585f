"""Which values of a row stand out from those around them: a rolling median and its spread."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

# Distance from the median in robust standard deviations from which on a value stands out. For
# normal data 3.5 is usual (Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993); times of
# batches have a longer tail above than below, and a factor of 2 over the median is asked as well.
LEAST_SCORE = 6.0
LEAST_RATIO = 2.0
# What is called usual changes over a run, so it is taken from this many neighbours.
WINDOW = 201
# Fewer values show no usual one.
LEAST_VALUES = 8
# Spreads below this part of the median are the clock's and the scheduler's, not the loader's.
_LEAST_SPREAD = 0.1
# 1 / the 75 % quantile of the normal distribution: MAD -> standard deviation.
_NORMAL = 1.4826
_MOST_BLOCKS = 4_000


class Departure(NamedTuple):
    """A value that stands out: its position `at`, the usual value around it, and by how much."""

    at: int
    usual: float
    score: float


def departures(values: Sequence[float], least: float) -> list[Departure]:
    """Values far above the median of their neighbours: the Hampel identifier (Hampel, 1974; Davies
    and Gather, 1993), upper side only.

    `least` is the smallest excess that is of interest, in the unit of the values. Blocks of
    neighbours share one median, so that a million values take well under a second.
    """
    count = len(values)
    if count < LEAST_VALUES:
        return []
    block = max(32, -(-count // _MOST_BLOCKS))
    found: list[Departure] = []
    for first in range(0, count, block):
        last = min(count, first + block)
        start = max(0, min((first + last - WINDOW) // 2, count - WINDOW))
        usual, spread = middle(values[start : start + WINDOW])
        spread = max(spread, _LEAST_SPREAD * usual, least / LEAST_SCORE)
        bound = max(usual + LEAST_SCORE * spread, LEAST_RATIO * usual, usual + least)
        if max(values[first:last]) < bound:
            continue
        for index in range(first, last):
            if values[index] >= bound:
                found.append(Departure(index, usual, (values[index] - usual) / spread))
    return found


def middle(values: Sequence[float]) -> tuple[float, float]:
    """Median, and standard deviation as the median absolute deviation gives it, or the distance to
    the upper quartile where that is larger: of two kinds of batches none is an outlier."""
    ordered = sorted(values)
    count = len(ordered)
    usual = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    above = ordered[3 * (count - 1) // 4] - usual
    return usual, _NORMAL * max(above, median([abs(value - usual) for value in ordered]))


def rounds(values: Sequence[float], length: int) -> list[float]:
    """Sums of each value and the `length - 1` before it (as many as there are)."""
    if length <= 1:
        return list(values)
    sums: list[float] = []
    running = 0.0
    for index, value in enumerate(values):
        running += value
        if index >= length:
            running -= values[index - length]
        sums.append(running)
    return sums
