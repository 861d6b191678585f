"""Counts over bins of equal ratio, in plain Python: numpy may be absent."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

BINS = 40


def histogram(
    groups: Sequence[Sequence[float]], bins: int = BINS
) -> tuple[list[float], list[list[int]]]:
    """Edges shared by all groups (bins + 1 of them, each the same factor above the last) and the
    counts of each group. Values that are not above zero count in the first bin; every finite value
    is counted once."""
    values = [v for group in groups for v in group if math.isfinite(v)]
    positive = [v for v in values if v > 0]
    if not positive:
        return [0.5, 1.5], [[sum(map(math.isfinite, group))] for group in groups]
    low, high = min(positive), max(positive)
    # A span below 1 % would give bins that differ by rounding only.
    low, high = (low / 1.05, high * 1.05) if high / low < 1.01 else (low, high)
    step = (math.log(high) - math.log(low)) / bins
    edges = [math.exp(math.log(low) + step * i) for i in range(bins + 1)]
    return edges, [_counts(group, edges) for group in groups]


def _counts(group: Sequence[float], edges: Sequence[float]) -> list[int]:
    counts = [0] * (len(edges) - 1)
    for value in group:
        if math.isfinite(value):
            place = bisect_right(edges, value) - 1
            counts[min(len(counts) - 1, max(0, place))] += 1
    return counts
