"""Errors say how far a number really moves when everything is done again."""

from __future__ import annotations

import random
import statistics

from jupyter_ioscope.diagnosis.spread import block_ratio_error, blocks, ratio_error, shares


def test_blocks_hold_every_value_once() -> None:
    for count in (1, 2, 5, 24, 101):
        assert sum(blocks([1.0] * count)) == count


def test_too_few_values_give_no_error_rather_than_a_wrong_one() -> None:
    assert ratio_error([1.0, 2.0], [2.0, 2.0]) is None
    assert block_ratio_error([1.0] * 4, [2.0] * 4) is None


def test_the_error_of_a_ratio_is_that_of_repeated_draws() -> None:
    rng = random.Random(2)
    ratios, errors = [], []
    for _ in range(300):
        whole = [rng.uniform(5, 10) for _ in range(60)]
        part = [w * min(1, max(0, rng.gauss(0.4, 0.2))) for w in whole]
        ratios.append(sum(part) / sum(whole))
        errors.append(ratio_error(part, whole) or 0.0)
    assert 0.8 < statistics.mean(errors) / statistics.stdev(ratios) < 1.25


def test_samples_of_one_long_wait_do_not_count_as_many() -> None:
    """Ten samples in one wait are one draw: the error stays that of the few waits."""
    few = shares([{"disk": 10}, {"lock": 10}, {"disk": 10}, {"disk": 10}])
    many = shares([{"disk": 1}, {"lock": 1}, {"disk": 1}, {"disk": 1}] * 10)
    assert few["disk"][0] == many["disk"][0] == 0.75
    assert few["disk"][1] > 2 * many["disk"][1]


def test_what_was_seen_always_is_not_certain() -> None:
    fraction, error = shares([{"sleep": 1}] * 10)["sleep"]
    assert fraction == 1.0
    assert error > 0.02


def test_an_interval_of_two_errors_mostly_holds_the_truth() -> None:
    rng = random.Random(3)
    hits = 0
    for _ in range(300):
        clusters = []
        for _ in range(50):
            kind = "disk" if rng.random() < 0.3 else "lock"
            clusters.append({kind: rng.randrange(1, 4)})
        fraction, error = shares(clusters).get("disk", (0.0, 0.0))
        hits += abs(fraction - 0.3) <= 1.96 * error
    assert hits > 270
