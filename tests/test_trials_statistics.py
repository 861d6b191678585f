"""The interval keeps its promise under peeking, and finds what is there."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from jupyter_ioscope.trials import statistics
from jupyter_ioscope.trials.pairs import Pairs
from jupyter_ioscope.trials.statistics import Interval, interval
from tests.bench import peeking

SEQUENCES, PAIRS = 600, 30


def false_alarms(draw: Callable[[int], tuple[float, float]]) -> float:
    """Share of A/A sequences in which any look after a pair called the arms different."""
    alarms = 0
    for _ in range(SEQUENCES):
        a: list[float] = []
        b: list[float] = []
        for pair in range(PAIRS):
            one, two = draw(pair)
            a.append(one)
            b.append(two)
            if statistics.verdict(interval(b, a)) in ("faster", "slower"):
                alarms += 1
                break
    return alarms / SEQUENCES


def test_peeking_after_every_pair_keeps_false_alarms_below_five_percent() -> None:
    rng = random.Random(1)
    assert (
        false_alarms(lambda pair: (rng.lognormvariate(0, 0.2), rng.lognormvariate(0, 0.2))) <= 0.05
    )


def test_heavy_tails_do_not_raise_false_alarms() -> None:
    rng = random.Random(2)

    def heavy() -> float:  # Student's t with 3 degrees of freedom, on the log scale
        return math.exp(0.15 * rng.gauss(0, 1) / math.sqrt(rng.gammavariate(1.5, 2) / 3))

    assert false_alarms(lambda pair: (heavy(), heavy())) <= 0.05


def test_a_drifting_machine_does_not_raise_false_alarms_when_pairs_are_shuffled() -> None:
    rng = random.Random(3)

    def drifting(pair: int) -> tuple[float, float]:
        first = math.exp(-0.05 * (2 * pair) + rng.gauss(0, 0.1))
        second = math.exp(-0.05 * (2 * pair + 1) + rng.gauss(0, 0.1))
        return (first, second) if rng.random() < 0.5 else (second, first)

    assert false_alarms(drifting) <= 0.05


def test_any_of_forty_looks_errs_in_five_percent_of_sequences_at_most() -> None:
    """400 sequences of equal arms for each kind of noise, the last one as of a busy machine."""
    rng = random.Random(6)
    kinds: dict[str, Callable[[], float]] = {
        "even": lambda: rng.gauss(0, 0.1),
        "heavy tails": lambda: 0.1 * rng.gauss(0, 1) / math.sqrt(rng.gammavariate(1.5, 2) / 3),
        "quiet with bursts": lambda: rng.gauss(0, 0.4 if rng.random() < 0.2 else 0.05),
    }
    for name, draw in kinds.items():
        noise = [draw() for _ in range(300)]
        assert peeking.false_alarms(noise, 400, rng) / 400 <= 0.05, name


def test_the_looks_of_the_simulation_are_those_of_a_comparison() -> None:
    rng = random.Random(7)
    logs = [rng.gauss(0.2, 0.15) for _ in range(12)]
    ratios = [math.exp(value) for value in logs]
    seen = [statistics.verdict(interval(ratios[:n], [1.0] * n)) for n in range(1, 13)]
    assert peeking.looks(logs) == seen
    assert "faster" in seen


def test_a_tenth_is_found_by_cpu_in_few_pairs_and_a_half_by_wall_on_a_busy_machine() -> None:
    """Standard deviations of ln(B / A): 4 % for CPU per sample, 40 % for throughput."""
    rng = random.Random(8)
    cpu = [rng.gauss(0, 0.04) for _ in range(300)]
    wall = [rng.gauss(0, 0.4) for _ in range(300)]
    assert 4 <= peeking.pairs_needed(peeking.power(cpu, 1.1, 300, rng)) <= 10
    assert 8 <= peeking.pairs_needed(peeking.power(wall, 1.5, 300, rng)) <= 40
    assert peeking.pairs_needed(peeking.power(wall, 1.01, 300, rng)) == 0


def test_a_plain_confidence_interval_would_have_failed_this_simulation() -> None:
    rng = random.Random(1)
    alarms = 0
    for _ in range(200):
        logs: list[float] = []
        for _ in range(PAIRS):
            logs.append(rng.gauss(0, 0.25))
            n = len(logs)
            if n < 5:
                continue
            mean = sum(logs) / n
            sd = math.sqrt(sum((x - mean) ** 2 for x in logs) / (n - 1))
            if abs(mean) > 2.1 * sd / math.sqrt(n):
                alarms += 1
                break
    assert alarms / 200 > 0.1


def test_one_and_a_half_times_faster_is_found_within_ten_pairs() -> None:
    rng = random.Random(4)
    found = 0
    for _ in range(400):
        b: list[float] = []
        for pair in range(1, 11):
            b.append(1.5 * math.exp(rng.gauss(0, 0.25)))
            seen = interval(b, [1.0] * pair)
            if statistics.decided(seen, pair):
                found += statistics.verdict(seen) == "faster"
                break
    assert found / 400 >= 0.8


def test_the_closed_form_is_where_the_bayes_factor_reaches_one_over_alpha() -> None:
    for n in (4, 7, 12, 40):
        half = statistics.half_width(n, sd=0.3)
        t = math.sqrt(n) * half / 0.3
        assert statistics.log_bayes_factor(t, n) == pytest.approx(math.log(1 / statistics.ALPHA))


def test_the_interval_covers_the_true_ratio_at_every_look() -> None:
    rng = random.Random(5)
    missed = 0
    for _ in range(400):
        b: list[float] = []
        for pair in range(1, 21):
            b.append(2.0 * math.exp(rng.gauss(0, 0.3)))
            seen = interval(b, [1.0] * pair)
            if not seen.low <= 2.0 <= seen.high:
                missed += 1
                break
    assert missed / 400 <= 0.05


def test_fewer_than_two_pairs_say_nothing() -> None:
    assert interval([], [])[1:] == (0.0, math.inf)
    assert interval([3.0], [1.0])[1:] == (0.0, math.inf)
    assert statistics.verdict(interval([3.0], [1.0])) == "undecided"
    assert math.isinf(interval([3.0], [1.0]).smallest_visible)


def test_an_interval_inside_the_margin_is_the_same_even_without_one_in_it() -> None:
    assert statistics.verdict(Interval(1.02, 1.01, 1.03)) == "same"
    assert statistics.verdict(Interval(1.2, 1.01, 1.4)) == "faster"
    assert statistics.verdict(Interval(0.8, 0.7, 0.97)) == "slower"
    assert statistics.verdict(Interval(1.1, 0.9, 1.4)) == "undecided"


def test_no_decision_before_four_pairs() -> None:
    assert not statistics.decided(Interval(2.0, 1.9, 2.1), 3)
    assert statistics.decided(Interval(2.0, 1.9, 2.1), 4)


def test_smallest_visible_is_half_the_width_of_the_interval() -> None:
    assert Interval(1.0, 1 / 1.1, 1.1).smallest_visible == pytest.approx(0.1)


def test_medians() -> None:
    assert statistics.median([3.0, 1.0, 2.0]) == 2.0
    assert statistics.median([4.0, 1.0, 2.0, 3.0]) == 2.5
    assert math.isnan(statistics.median([]))


def test_noise_of_one_size_does_not_raise_false_alarms() -> None:
    """Four pairs in eight have one sign and no spread, which no Gaussian noise would show."""
    rng = random.Random(9)
    kinds: dict[str, Callable[[], float]] = {
        "one size": lambda: rng.choice((-0.1, 0.1)),
        "nearly one size": lambda: rng.choice((-0.1, 0.1)) + rng.gauss(0, 0.002),
        "large": lambda: rng.choice((-0.7, 0.7)),
        "two sizes": lambda: rng.choice((-0.12, -0.1, 0.1, 0.12)),
        "with nothing": lambda: rng.choice((-0.1, 0.0, 0.1)),
    }
    for name, draw in kinds.items():
        alarms = 0
        for _ in range(1000):
            seen = peeking.looks([draw() for _ in range(30)])
            alarms += any(one in ("faster", "slower") for one in seen)
        assert alarms / 1000 <= 0.05, name


def in_pairs(logs_of_trials: Sequence[float], rng: random.Random) -> list[float]:
    """ln(B / A) of equal arms whose trials run one after the other in the order of a comparison."""
    pairs = Pairs(cast(Any, (None, None)), cold=False)
    pairs._order = rng
    found = []
    for one, two in zip(logs_of_trials[::2], logs_of_trials[1::2], strict=True):
        found.append(two - one if pairs._arms() == "AB" else one - two)
        pairs.trials += cast(Any, (None, None))
    return found


def test_trials_at_one_of_two_speeds_do_not_raise_false_alarms() -> None:
    """Each speed with a jitter of a tenth: values that differ, so that only the order of pairs and
    the trials in which both arms have one speed keep them from agreeing by chance."""
    rng = random.Random(11)

    def at_random(last: float, number: int) -> float:
        return rng.choice((0.0, 0.3))

    def now_and_then(last: float, number: int) -> float:
        return 0.3 - last if rng.random() < 0.2 else last

    def every_other(last: float, number: int) -> float:
        return last if rng.random() < 0.1 else 0.3 - last

    def second_of_a_pair(last: float, number: int) -> float:
        return 0.3 * (number % 2)

    for speed in (at_random, now_and_then, every_other, second_of_a_pair):
        alarms = 0
        for _ in range(500):
            speeds = [0.0]
            for number in range(32):
                speeds.append(speed(speeds[-1], number))
            trials = [one + rng.gauss(0, 0.03) for one in speeds[1:]]
            seen = peeking.looks(in_pairs(trials, rng))
            alarms += any(one in ("faster", "slower") for one in seen)
        assert alarms / 500 <= 0.05, speed.__name__


def test_clear_effects_still_end_after_about_four_pairs() -> None:
    rng = random.Random(10)
    for spread in (0.02, 0.05, 0.1):  # of ln(B / A); trials of a quiet and of a busy machine
        ends = []
        for _ in range(300):
            seen = peeking.looks([rng.gauss(math.log(3), spread) for _ in range(12)])
            ends.append(4 + [one != "undecided" for one in seen[3:]].index(True))
        assert sum(ends) / 300 <= 4.5, spread


def test_few_pairs_of_one_value_may_be_noise_of_either_sign() -> None:
    seen = interval([3.0] * 6, [1.0] * 6)
    assert (seen.low, seen.high) == pytest.approx((1 / 3, 3.0))
    assert statistics.verdict(seen) == "undecided"
    assert statistics.verdict(interval([3.0] * 7, [1.0] * 7)) == "faster"
    assert statistics.verdict(interval([1.01] * 4, [1.0] * 4)) == "same"
    assert statistics.geometric_interval([3.0] * 4)[1:] == pytest.approx((3.0, 3.0))
