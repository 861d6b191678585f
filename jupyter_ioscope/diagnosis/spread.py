"""How sure a number is: standard errors of ratios from blocks and from clusters of samples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

Z95 = 1.96  # half-width of a 95 % interval in standard errors (normal)
BLOCKS = 12  # enough blocks for a stable spread, long enough each to hide the order of batches
UNKNOWN_FRACTION_ERROR = 0.5  # of a fraction about which too little was seen


def ratio_error(numerators: Sequence[float], denominators: Sequence[float]) -> float | None:
    """Standard error of sum(numerators) / sum(denominators) over independent clusters.

    The ratio estimator of cluster sampling (Cochran, Sampling Techniques, 3rd ed., eq. 6.13):
    residuals of each cluster against the common ratio. None with fewer than three clusters.
    """
    count, whole = len(denominators), sum(denominators)
    if count < 3 or whole <= 0:
        return None
    ratio = sum(numerators) / whole
    squares = sum((a - ratio * b) ** 2 for a, b in zip(numerators, denominators, strict=True))
    return math.sqrt(squares * count / (count - 1)) / whole


def blocks(values: Sequence[float], count: int = BLOCKS) -> list[float]:
    """Sums of `count` consecutive stretches of equal length; fewer when there are few values.

    Batch means: neighbouring batches depend on each other, long stretches hardly do.
    """
    count = min(count, len(values) // 2)
    if count < 1:
        return [float(sum(values))] if values else []
    edges = [round(i * len(values) / count) for i in range(count + 1)]
    return [float(sum(values[a:b])) for a, b in pairwise(edges)]


def block_ratio_error(numerators: Sequence[float], denominators: Sequence[float]) -> float | None:
    """`ratio_error` over blocks of neighbouring values."""
    return ratio_error(blocks(numerators), blocks(denominators))


def shares(clusters: Iterable[Mapping[str, int]]) -> dict[str, tuple[float, float]]:
    """Kind -> (its fraction of all samples, one standard error).

    A cluster holds the samples of one fetch. Samples of one fetch may fall into the same wait, so
    they are not independent draws; fetches are. The error is that of cluster sampling, but never
    below the binomial one for as many draws as there are clusters, with two draws added
    (Agresti and Coull, 1998): a kind that was seen always is not known to be certain.
    """
    rows = [cluster for cluster in clusters if cluster]
    sizes = [float(sum(row.values())) for row in rows]
    whole = sum(sizes)
    found: dict[str, tuple[float, float]] = {}
    for kind in sorted({kind for row in rows for kind in row}):
        hits = [float(row.get(kind, 0)) for row in rows]
        fraction = sum(hits) / whole
        smooth = (fraction * len(rows) + 1) / (len(rows) + 2)
        floor = math.sqrt(smooth * (1 - smooth) / (len(rows) + 2))
        found[kind] = fraction, max(ratio_error(hits, sizes) or 0.0, floor)
    return found


def together(*errors: float) -> float:
    """Standard error of a sum of independent parts."""
    return math.sqrt(sum(error * error for error in errors))
