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

The t-test takes noise for Gaussian. Noise that has one size and either sign gives n pairs of one
sign, and next to no spread, with probability 2^(1 - n): an eighth of four pairs. Gaussian noise
does not repeat a value, so few different values are the mark of the other kind; until there are
enough pairs, the interval then holds what the same noise with the other sign would have shown.

Noise of one size with a jitter would pass that: if it hit exactly one trial of every pair, by
chance, 12 % of comparisons of equal arms would err (simulated). Trials do not come like that: each
is slow or not by itself, so that in half of the pairs both are or neither is, and every second pair
runs in the other order than the one before it, so that what hits every other trial changes sides.
Simulated so, with two speeds 30 % apart and a jitter of a tenth of it, 0 to 3 % err.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

ALPHA = 0.05
# Prior variance of the effect size (mean over standard deviation). 5 gives close to the narrowest
# intervals between 5 and 15 pairs; chosen by computing half-widths for 0.5 ... 50.
PRIOR_VARIANCE = 5.0
SAME_MARGIN = 0.05  # ratios within 1 / 1.05 ... 1.05 are called the same
MIN_PAIRS = 4
# Fewer pairs of fewer different values say nothing against equal arms. By simulation (20,000
# sequences of equal arms, 40 looks, noise of one size) 14 % err without this, 7.3 % with 5 pairs,
# 4.5 % with 6, 3.0 % with 7.
FEW_VALUES, FEW_PAIRS = 3, 7
ALIKE = 0.005  # ln(B / A) this close count as one value: no machine repeats one to the last digit


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
    b: Sequence[float],
    a: Sequence[float],
    alpha: float = ALPHA,
    g: float = PRIOR_VARIANCE,
    few_pairs: int = FEW_PAIRS,
) -> Interval:
    """The ratio b / a of paired positive values, with its interval. Fewer than `few_pairs` of
    nearly one ratio are taken for noise of one size; with 0 they never are."""
    logs = _logs(b, a)
    found = _interval(logs, alpha, g)
    if found.low <= 0 or math.isinf(found.high):
        return found
    low, high = either_sign(math.log(found.low), math.log(found.high), logs, few_pairs)
    return Interval(found.ratio, math.exp(low), math.exp(high))


def _interval(logs: Sequence[float], alpha: float, g: float) -> Interval:
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


def either_sign(
    low: float, high: float, logs: Sequence[float], few_pairs: int = FEW_PAIRS
) -> tuple[float, float]:
    """An interval of ln(B / A), widened where few different values were seen in few pairs."""
    if not _may_be_one_size(logs, few_pairs):
        return low, high
    largest = max(abs(value) for value in logs)
    return min(low, -largest), max(high, largest)


def least_pairs(b: Sequence[float], a: Sequence[float]) -> int:
    """How many pairs are needed at least before they can show a difference."""
    return FEW_PAIRS if _may_be_one_size(_logs(b, a), FEW_PAIRS) else MIN_PAIRS


def _logs(b: Sequence[float], a: Sequence[float]) -> list[float]:
    return [math.log(y / x) for y, x in zip(b, a, strict=False) if x > 0 and y > 0]


def _may_be_one_size(logs: Sequence[float], few_pairs: int) -> bool:
    different = 1 + sum(two - one > ALIKE for one, two in pairwise(sorted(logs)))
    return len(logs) < few_pairs and different < FEW_VALUES


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
    return _interval([math.log(x) for x in values if x > 0], ALPHA, PRIOR_VARIANCE)
