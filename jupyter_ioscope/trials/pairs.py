"""The timed part of a comparison: adjacent pairs of trials in random order, until decided."""

from __future__ import annotations

import os
import random
import time

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.model.comparison import Trial
from jupyter_ioscope.trials import statistics
from jupyter_ioscope.trials.page_cache import Residency, evict, residency
from jupyter_ioscope.trials.runner import Runner
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.trial import Plan
from jupyter_ioscope.units import ratio_range

_OVERTIME = 1.25  # how far the budget may be stretched to reach the least number of pairs


class Pairs:
    """Trials made so far. `files` are the data files whose place in the page cache is proven
    before each trial, and from which they are evicted when `cold`. `alpha` is the probability with
    which the interval may miss the truth, all looks together."""

    def __init__(
        self,
        specs: tuple[LoaderSpec, LoaderSpec],
        cold: bool,
        alpha: float = statistics.ALPHA,
    ) -> None:
        self.specs, self.cold, self.alpha = specs, cold, alpha
        self.files: list[str] = []
        self.trials: list[Trial] = []
        self.cached: list[Residency] = []
        # Samples a second of arm A with its files in the page cache, where trials are cold.
        self.warm_rate = 0.0
        # Its own generator: the user's random state is not ours to advance.
        self._order = random.Random(os.urandom(8))
        self._first = ""  # arm of the pair before

    @property
    def complete(self) -> int:
        return len(self.trials) // 2

    def of(self, arm: str) -> list[Trial]:
        """Trials of one arm in order of pairs; the open pair left out."""
        return [t for t in self.trials if t.arm == arm and t.pair < self.complete]

    def throughput(self) -> statistics.Interval:
        a, b = self._rates()
        return statistics.interval(b, a, self.alpha)

    def needed(self) -> int:
        """How many pairs like these there must be to show a difference."""
        a, b = self._rates()
        return statistics.least_pairs(b, a)

    def doubts(self) -> list[str]:
        """Why pairs that agree so well show nothing yet; empty where they do, or do not agree."""
        undecided = statistics.verdict(self.throughput()) == "undecided"
        if not statistics.MIN_PAIRS <= self.complete < self.needed() or not undecided:
            return []
        return [
            f"These {self.complete} pairs differ by nearly the same factor; in fewer than "
            f"{statistics.FEW_PAIRS} that may be chance, on a machine that switches between two "
            "speeds: a larger budget decides."
        ]

    def _rates(self) -> tuple[list[float], list[float]]:
        a, b = self.of("A"), self.of("B")
        return [t.samples_per_s for t in a], [t.samples_per_s for t in b]

    def cpu(self) -> statistics.Interval:
        """CPU per sample, A over B."""
        a, b = self.of("A"), self.of("B")
        return statistics.interval(
            [t.cpu_ms_per_sample for t in a], [t.cpu_ms_per_sample for t in b], self.alpha
        )

    def run(self, runner: Runner, plan: Plan, budget_s: float) -> None:
        """Make pairs until the verdict stands or the budget is spent (one pair at least).

        Raises:
            TrialError: an arm failed.
            Cancelled: the pairs made so far stay.
        """
        reporter = runner.reporter
        costs: list[float] = []
        while not costs or self._another(reporter.age_s(), max(costs), budget_s):
            started = time.monotonic()
            for arm in self._arms():
                self._note(runner, f"pair {self.complete + 1}, arm {arm}")
                self.trials.append(self._trial(runner, arm, plan))
            costs.append(time.monotonic() - started)
            reporter.pairs(self.complete, self.throughput())

    def _arms(self) -> str:
        """The order of the next pair: random, and then the other way round. What the second run of
        a pair has of being the second then cancels out, and so does a steady drift."""
        pair = self._order.choice(("AB", "BA"))
        if self.complete % 2:
            pair = "BA" if self._first == "A" else "AB"
        self._first = pair[0]
        return pair

    def _trial(self, runner: Runner, arm: str, plan: Plan) -> Trial:
        if self.cold:
            evict(self.files)
        self.cached.append(residency(self.files))
        try:
            return runner.trial(arm, self.specs[arm == "B"], plan, self.complete)
        except TimeoutError as error:
            raise TrialError(str(error)) from error

    def _another(self, age_s: float, cost_s: float, budget_s: float) -> bool:
        if statistics.decided(self.throughput(), self.complete):
            return False
        limit_s = budget_s * (_OVERTIME if self.complete < self.needed() else 1.0)
        return age_s + cost_s <= limit_s

    def _note(self, runner: Runner, text: str) -> None:
        found = self.throughput()
        if self.complete >= 2 and found.low > 0:
            text += f"; B so far {ratio_range(found.low, found.high)}"
        runner.reporter.stage("running", text)
