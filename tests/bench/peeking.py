"""Simulated comparisons that are looked at after every pair, with the noise of recorded pairs.

Pairs of the same arm twice are centred and drawn again with a random sign (which arm comes first
is random, too). Then: how often any look calls equal arms different, and after how many pairs a
true factor is found.
"""

from __future__ import annotations

import math
import random
import statistics as plain
from collections.abc import Sequence

from jupyter_ioscope.trials.statistics import (
    MIN_PAIRS,
    Interval,
    either_sign,
    half_width,
    verdict,
)

PAIRS = 40


def looks(logs: Sequence[float]) -> list[str]:
    """The verdict after each pair, from ln(B / A) of the pairs so far."""
    found, total, squares = [], 0.0, 0.0
    for number, value in enumerate(logs, 1):
        total, squares = total + value, squares + value * value
        mean = total / number
        spread = math.sqrt(max(0.0, squares - number * mean * mean) / max(1, number - 1))
        half = _HALF[number] * spread if number > 1 else math.inf
        if half < 500:
            low, high = either_sign(mean - half, mean + half, logs[:number])
            seen = Interval(math.exp(mean), math.exp(low), math.exp(high))
            found.append(verdict(seen))
        else:
            found.append("undecided")
    return found


def false_alarms(noise: Sequence[float], sequences: int, rng: random.Random) -> int:
    """Sequences of equal arms that any of 40 looks calls different."""
    return sum(
        any(seen in ("faster", "slower") for seen in looks(drawn(noise, 0.0, rng)))
        for _ in range(sequences)
    )


def power(noise: Sequence[float], factor: float, sequences: int, rng: random.Random) -> list[float]:
    """Part of sequences in which B, faster by a true factor, was found after n pairs (from 1)."""
    counts = [0] * PAIRS
    for _ in range(sequences):
        seen = looks(drawn(noise, math.log(factor), rng))
        decided = [n for n, one in enumerate(seen) if one != "undecided" and n + 1 >= MIN_PAIRS]
        if decided and seen[decided[0]] == "faster":
            for n in range(decided[0], PAIRS):
                counts[n] += 1
    return [count / sequences for count in counts]


def pairs_needed(shares: Sequence[float], wanted: float = 0.8) -> int:
    """Pairs after which so many sequences are decided; 0 where that is never."""
    return next((n for n, share in enumerate(shares, 1) if share >= wanted), 0)


def drawn(noise: Sequence[float], centre: float, rng: random.Random) -> list[float]:
    return [centre + rng.choice((-1.0, 1.0)) * value for value in rng.choices(noise, k=PAIRS)]


def centred(sequences: Sequence[Sequence[float]]) -> list[float]:
    """The noise of recorded comparisons: each one's pairs less their mean. Widened by
    sqrt(n / (n - 1)), because the mean of n pairs follows them."""
    found = []
    for logs in sequences:
        if len(logs) > 1:
            mean, wide = plain.fmean(logs), math.sqrt(len(logs) / (len(logs) - 1))
            found += [wide * (value - mean) for value in logs]
    return found


_HALF = [math.inf] + [half_width(number, 1.0) for number in range(1, PAIRS + 1)]
