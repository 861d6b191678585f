"""What pairs of trials show: an interval that may be looked at after every pair.

Each pair gives x = ln(B / A). The interval holds every mean mu0 that the Bayes factor of the
two-sided t-test with a Gaussian prior on the effect size and the right-Haar prior on the scale has
not rejected (Gonen et al. 2005, "The Bayesian two-sample t test"). With that prior on the scale the
Bayes factor is an e-process (Perez-Ortiz, Lardy, de Heide, Grunwald 2022, "E-statistics, group
invariance and anytime-valid testing"), so by Ville's inequality all looks together err with
probability at most alpha. With n pairs, nu = n - 1, t = sqrt(n) (mean - mu0) / sd:

    BF(mu0) = (1 + n g)^(-1/2) [(1 + t^2 / nu) / (1 + t^2 / (nu (1 + n g)))]^(n / 2)  <  1 / alpha

which with K = (sqrt(1 + n g) / alpha)^(2 / n) and r = 1 / (1 + n g) is t^2 < nu (K - 1) / (1 - K r)
when K r < 1, and always otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

ALPHA = 0.05
# Prior variance of the effect size (mean over standard deviation). 5 gives close to the narrowest
# intervals between 5 and 15 pairs; chosen by computing half-widths for 0.5 ... 50.
PRIOR_VARIANCE = 5.0
SAME_MARGIN = 0.05  # ratios within 1 / 1.05 ... 1.05 are called the same
MIN_PAIRS = 4


class Interval(NamedTuple):
    """A ratio with its interval; (0, inf) while nothing can be said."""

    ratio: float
    low: float
    high: float

    @property
    def smallest_visible(self) -> float:
        """Relative effect that these pairs could have shown: the half-width of the interval."""
        if self.low <= 0 or not math.isfinite(self.high):
            return math.inf
        return math.sqrt(self.high / self.low) - 1.0


def half_width(n: int, sd: float, alpha: float = ALPHA, g: float = PRIOR_VARIANCE) -> float:
    """Half-width of the interval of the mean after `n` values with standard deviation `sd`."""
    if n < 2:
        return math.inf
    k = (math.sqrt(1 + n * g) / alpha) ** (2 / n)
    r = 1 / (1 + n * g)
    if k * r >= 1:
        return math.inf
    return sd * math.sqrt((n - 1) * (k - 1) / (1 - k * r) / n)


def log_bayes_factor(t: float, n: int, g: float = PRIOR_VARIANCE) -> float:
    """ln BF of "the mean differs" over "the mean is mu0" for a t statistic of `n` values."""
    nu, shrink = n - 1, 1 + n * g
    grown = math.log1p(t * t / nu) - math.log1p(t * t / (nu * shrink))
    return 0.5 * (n * grown - math.log(shrink))


def interval(
    b: Sequence[float], a: Sequence[float], alpha: float = ALPHA, g: float = PRIOR_VARIANCE
) -> Interval:
    """The ratio b / a of paired positive values, with its interval."""
    logs = [math.log(y / x) for y, x in zip(b, a, strict=False) if x > 0 and y > 0]
    if not logs:
        return Interval(math.nan, 0.0, math.inf)
    n = len(logs)
    mean = math.fsum(logs) / n
    if n < 2:
        return Interval(math.exp(mean), 0.0, math.inf)
    sd = math.sqrt(math.fsum((x - mean) ** 2 for x in logs) / (n - 1))
    half = half_width(n, sd, alpha, g)
    if math.isinf(half) or half > 500:
        return Interval(math.exp(mean), 0.0, math.inf)
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def verdict(found: Interval, margin: float = SAME_MARGIN) -> str:
    """ "same" when the interval lies within the margin, "faster" or "slower" when it leaves out 1,
    else "undecided"."""
    if found.low >= 1 / (1 + margin) and found.high <= 1 + margin:
        return "same"
    if found.low > 1:
        return "faster"
    return "slower" if found.high < 1 else "undecided"


def decided(found: Interval, pairs: int, margin: float = SAME_MARGIN) -> bool:
    """Whether no more pairs are needed. The interval is valid at every look, so looking is free."""
    return pairs >= MIN_PAIRS and verdict(found, margin) != "undecided"


def median(values: Sequence[float]) -> float:
    """The middle value; NaN of none."""
    if not values:
        return math.nan
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def geometric_interval(values: Sequence[float]) -> Interval:
    """The geometric mean of one arm's values with its interval (as a ratio to 1)."""
    return interval(values, [1.0] * len(values))
