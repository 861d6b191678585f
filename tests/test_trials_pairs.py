"""Pairs of trials: their order, their end, and what too few of them leave open."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from jupyter_ioscope.model.comparison import Trial
from jupyter_ioscope.trials.pairs import Pairs
from jupyter_ioscope.trials.trial import Plan

PLAN = Plan("steady", seed=1, discard=0)


class Clock:
    """In place of a runner and its reporter: a trial takes a second, and its rate is told."""

    def __init__(self, rate: Callable[[str, int], float]) -> None:
        self.rate, self.runs, self.reporter = rate, "", self

    def age_s(self) -> float:
        return float(len(self.runs))

    def stage(self, *text: str) -> None:
        pass

    def pairs(self, *found: Any) -> None:
        pass

    def trial(self, arm: str, spec: Any, plan: Plan, pair: int) -> Trial:
        self.runs += arm
        rate = self.rate(arm, len(self.runs))
        return Trial(arm, pair, 10, 1, 0, 1.0, rate, 1.0, 0.1, 1, 0.0)


def run(rate: Callable[[str, int], float], budget_s: float = 24.0) -> tuple[Pairs, str]:
    pairs, clock = Pairs((None, None), cold=False), Clock(rate)  # type: ignore[arg-type]
    pairs.run(clock, PLAN, budget_s)  # type: ignore[arg-type]
    return pairs, clock.runs


def test_every_second_pair_is_the_one_before_the_other_way_round() -> None:
    rng = random.Random(1)
    runs = {run(lambda arm, number: rng.uniform(1, 9))[1] for _ in range(20)}
    # A difference of the arms may show by chance, and end a run between two pairs.
    twos = [order[n : n + 4] for order in runs for n in range(0, len(order) - 3, 4)]
    assert all(two == two[::-1] for two in twos)
    assert len({order[:4] for order in runs}) == 2


def test_what_the_second_trial_of_a_pair_has_of_being_the_second_decides_nothing() -> None:
    """As of a page cache that the first one fills: one size, and the sign of the order."""
    for _ in range(40):
        pairs, _ = run(lambda arm, number: 130.0 if number % 2 else 100.0)
        assert pairs.complete == 12
        assert not pairs.throughput().low > 1
        assert not pairs.throughput().high < 1


@pytest.mark.parametrize(("spread", "most"), [(0.05, 5), (0.0, 7)])
def test_a_clear_effect_ends_early_and_a_little_later_where_all_pairs_are_alike(
    spread: float, most: int
) -> None:
    rng = random.Random(2)

    def rate(arm: str, number: int) -> float:
        return (300.0 if arm == "B" else 100.0) * rng.lognormvariate(0, spread)

    pairs, _ = run(rate, budget_s=60.0)
    assert 4 <= pairs.complete <= most
    assert pairs.throughput().low > 1
    assert pairs.doubts() == []


def test_pairs_that_are_alike_and_too_few_say_why_they_show_nothing() -> None:
    pairs, _ = run(lambda arm, number: 300.0 if arm == "B" else 100.0, budget_s=7.5)
    assert pairs.complete == 5  # the budget may be stretched for them
    assert "in fewer than 7 that may be chance" in pairs.doubts()[0]
    alike, _ = run(lambda arm, number: 100.0)
    assert alike.complete == 4  # the same
    assert alike.doubts() == []
