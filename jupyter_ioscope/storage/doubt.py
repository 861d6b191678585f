"""How far the numbers of a short measurement can be trusted: ranges of percentiles and bandwidth.

A range is widened by two things. One is chance: the ranks between which a percentile lies with 95 %
(normal approximation of the binomial distribution; Hahn and Meeker, "Statistical Intervals", 5.2).
The other is one bad moment, which chance does not know: each fifth of the requests, in the order in
which they were made, is left out once, so that what a single stretch of time is the reason of does
not count as known.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

_PARTS = 5
_Z = 1.96  # 95 %


def percentile(ordered: Sequence[int], fraction: float) -> float:
    """The smallest value that at least this fraction of the values does not exceed; 0 of none."""
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, max(0, -int(-fraction * len(ordered) // 1) - 1))]


def percentile_range(took_ns: Sequence[int], fraction: float) -> tuple[float, float]:
    """(low, high) of a percentile in seconds; (0, 0) of nothing. `took_ns` in order of time."""
    ordered = sorted(took_ns)
    if not ordered:
        return 0.0, 0.0
    count, last = len(ordered), len(ordered) - 1
    spread = _Z * math.sqrt(count * fraction * (1 - fraction))
    ranks = (math.floor(count * fraction - spread), math.ceil(count * fraction + spread))
    by_chance = [float(ordered[min(last, max(0, rank - 1))]) for rank in ranks]
    low, high = _without(took_ns, lambda some: percentile(sorted(some), fraction))
    return min(low, *by_chance) / 1e9, max(high, *by_chance) / 1e9


def bandwidth_range(
    took_ns: Sequence[int], request_bytes: int, more_s: float = 0.0
) -> tuple[float, float]:
    """(low, high) of bytes per second; `more_s` are seconds that belong to no single request."""
    return _without(
        took_ns, lambda some: request_bytes * len(some) / max(1e-9, sum(some) / 1e9 + more_s)
    )


def _without(
    took_ns: Sequence[int], number: Callable[[Sequence[int]], float]
) -> tuple[float, float]:
    """The smallest and the largest `number` when each part is left out once, and when none is."""
    parts = min(_PARTS, len(took_ns))
    edges = [len(took_ns) * part // parts for part in range(parts + 1)] if parts > 1 else []
    found = [number(took_ns)]
    for begin, end in itertools.pairwise(edges):
        found.append(number([*took_ns[:begin], *took_ns[end:]]))
    return min(found), max(found)
