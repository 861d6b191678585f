"""The runs of a bench: look at what comes out, pilots, then rounds in random order until decided.

In every round each arm runs once, so that an arm and its reference are a pair. Each interval holds
with 95 %, however often it is looked at; not all of them together.

What is dear does not break the budget: beyond the first two arms that can run, one that the budget
does not hold any more gets three seconds to be tried, or is left out. Four rounds of all others are
made in any case, and how long they take is said before them.
"""

from __future__ import annotations

import functools
import math
import os
import random
import time
from collections.abc import Callable
from typing import Any

from jupyter_ioscope.benches._bench import Arm, Found, Measured
from jupyter_ioscope.benches._forks import ArmError, forked, here
from jupyter_ioscope.benches._timing import looked, timed
from jupyter_ioscope.trials import statistics
from jupyter_ioscope.trials.statistics import Interval, median
from jupyter_ioscope.units import seconds

_ROUNDS = 8  # that the budget should hold
_LONGEST_S, _SHORTEST_S = 0.5, 0.02  # of one run
_LONG_S = 0.1  # a pass that is longer needs none before it to be warm
_COSTLY_S = 2.0
_LIMIT_S = 60.0  # an arm that takes longer for one run is ended
_MOST_ROUNDS = 40
_TRY_S = 3.0  # for an arm when the budget is used up
_AT_LEAST = 2  # arms: fewer compare nothing

Say = Callable[[str], None]


class Rounds:
    """All runs of some arms. `runs` has one entry a round and arm; `failed` says why, for arms that
    could not run, `left_out` for those that the budget did not hold; `differences` what came out
    otherwise than the reference. `to_go_s` is about how long it still takes, at most, -1 before
    that is known."""

    def __init__(self, arms: tuple[Arm, ...], say: Say, own_process: bool, until: float) -> None:
        self.arms, self.say, self.until = arms, say, until
        self._own_process = own_process
        self.runs: dict[tuple[str, str], dict[int, dict[str, Any]]] = {arm.key: {} for arm in arms}
        self.differences: dict[tuple[str, str], tuple[str, ...]] = {}
        self.failed: dict[tuple[str, str], str] = {}
        self.left_out: dict[tuple[str, str], str] = {}
        self.to_go_s = -1.0
        self._began = time.monotonic()
        self._long: dict[tuple[str, str], bool] = {}
        self._cost_s: dict[tuple[str, str], float] = {}
        # Its own generator: a sample's random state is not ours to advance.
        self._order = random.Random(os.urandom(8))

    def run(self) -> None:
        stretch_s = self._tries()
        self._expect(0, sum(self._cost_s[arm.key] + stretch_s for arm in self._cheap()))
        for number in range(_MOST_ROUNDS):
            began = time.monotonic()
            if not self._round(number, stretch_s):
                break
            cost_s = time.monotonic() - began
            # The first four are had in any case: fewer show nothing.
            if number + 1 >= statistics.MIN_PAIRS and time.monotonic() + cost_s > self.until:
                break
            self._expect(number + 1, cost_s)

    def _expect(self, done: int, round_s: float) -> None:
        """How long it still takes: four rounds in all, then until it is clear, or to the budget."""
        least_s = max(0, statistics.MIN_PAIRS - done) * round_s
        self.to_go_s = least_s if least_s > 0 else max(0.0, self.until - time.monotonic())

    def _tries(self) -> float:
        """What comes out of each arm, and one short run of it: what it costs. Returns how long
        later runs are, in seconds."""
        overhead_s, first = 0.0, {}
        for arm in self.arms:
            told = self._tried(arm)
            if told is None:
                continue
            self._long[arm.key] = told["seconds"] * arm.items > _LONG_S
            overhead_s += max(0.0, self._cost_s[arm.key] - told["seconds"] * arm.items)
            first[arm.key] = told
        # Where one run of an arm takes seconds, its pilot has to count, too.
        for group in {arm.group for arm in self._alive() if self._costly(arm)}:
            for arm in self._alive():
                if arm.group == group:
                    self.runs[arm.key][-1] = first[arm.key]
        return self._stretch_s(overhead_s)

    def _tried(self, arm: Arm) -> Any:
        """The pilot of an arm; None where it cannot run, or is left out."""
        optional = len([one for one in self._alive() if one.key in self._cost_s]) >= _AT_LEAST
        if arm.look is not None:
            told = self._in_time(arm, optional, functools.partial(looked, arm), "what comes out")
            if told is None:
                return None
            self.differences[arm.key] = tuple(told["differences"])
        began = time.monotonic()
        pilot = functools.partial(timed, arm, 0.0, self._own_process)
        told = self._in_time(arm, optional, pilot, "pilot")
        if told is None:
            return None
        self._cost_s[arm.key] = time.monotonic() - began
        return told

    def _in_time(
        self, arm: Arm, optional: bool, body: Callable[[], dict[str, Any]], what: str
    ) -> Any:
        """`_in_fork`; an arm that nobody waits for is ended when the budget is used up."""
        left_s = max(_TRY_S, self._left_s(statistics.MIN_PAIRS))
        limit_s = min(_LIMIT_S, left_s) if optional else _LIMIT_S
        until = time.monotonic() + limit_s
        told = self._in_fork(arm, body, what, limit_s)
        if told is None and limit_s < _LIMIT_S and time.monotonic() >= until:
            del self.failed[arm.key]
            self._leave_out(arm)
        return told

    def _leave_out(self, arm: Arm) -> None:
        budget_s = max(0.0, self.until - self._began)
        self.left_out[arm.key] = f"{seconds(budget_s)} were too short for it: give a larger budget"

    def _left_s(self, rounds: int) -> float:
        """What the budget still holds beside so many rounds of the arms that are cheap."""
        cost_s = sum(self._cost_s.get(arm.key, 0.0) for arm in self._cheap())
        return self.until - time.monotonic() - rounds * cost_s

    def _cheap(self) -> list[Arm]:
        return [arm for arm in self._alive() if arm.key in self._cost_s and not self._costly(arm)]

    def over_s(self) -> float:
        """By how much the budget was not kept, in seconds; at most 0 where it was."""
        return time.monotonic() - self.until

    def _costly(self, arm: Arm) -> bool:
        return self._cost_s.get(arm.key, 0.0) > _COSTLY_S

    def against(self, arm: Arm) -> Arm | None:
        """What an arm is compared with; None for the reference itself, or where that failed."""
        other = self._other(arm)
        return None if other is None or self._gone(other) else other

    def ratio(self, arm: Arm) -> Interval:
        """How many times as fast as its reference it is."""
        other = self.against(arm)
        if other is None:
            return Interval(math.nan, 0.0, math.inf)
        mine, its = self.runs[arm.key], self.runs[other.key]
        both = sorted(mine.keys() & its.keys())
        # Its budget may hold four rounds only, and passes without workers hardly differ.
        return statistics.interval(
            [its[n]["seconds"] for n in both], [mine[n]["seconds"] for n in both], few_pairs=0
        )

    def pairs(self, arm: Arm) -> int:
        other = self.against(arm)
        return len(self.runs[arm.key].keys() & self.runs[other.key].keys()) if other else 0

    def middle(self, arm: Arm, what: str) -> float:
        """The median over all runs of an arm; NaN of none."""
        return median([float(run[what]) for run in self.runs[arm.key].values()])

    def found(self) -> Found:
        """What tables are made from."""
        return {arm.key: self._measured(arm) for arm in self.arms if self.runs[arm.key]}

    def _measured(self, arm: Arm) -> Measured:
        runs = list(self.runs[arm.key].values())
        names = {name for run in runs for name in run["own"]}
        own = {n: median([run["own"][n] for run in runs if n in run["own"]]) for n in names}
        return Measured(self.middle(arm, "seconds"), own)

    def _other(self, arm: Arm) -> Arm | None:
        peers = [one for one in self.arms if one.group == arm.group and not self._gone(one)]
        named = [one for one in peers if one.name == arm.against]
        first = next(iter(named or peers), None)
        return None if first is arm else first

    def _gone(self, arm: Arm) -> bool:
        return arm.key in self.failed or arm.key in self.left_out

    def _alive(self) -> list[Arm]:
        return [arm for arm in self.arms if not self._gone(arm)]

    def _round(self, number: int, stretch_s: float) -> bool:
        """One run of each arm that is not decided, and of what those are compared with."""
        left_s = self._left_s(max(0, statistics.MIN_PAIRS - number))
        wanted = {
            arm.key
            for arm in self._alive()
            if not self._decided(arm) and not (self._costly(arm) and self._cost_s[arm.key] > left_s)
        }
        if not wanted:
            return False
        others = (self.against(arm) for arm in self.arms if arm.key in wanted)
        wanted |= {other.key for other in others if other is not None}
        for arm in self._shuffled(wanted):
            job = functools.partial(
                timed, arm, stretch_s, self._own_process, not self._long.get(arm.key)
            )
            told = self._in_fork(arm, job, f"round {number + 1}, {self._to_go(number)}")
            if told is not None:
                self.runs[arm.key][number] = told
        return True

    def _to_go(self, done: int) -> str:
        most = "" if done < statistics.MIN_PAIRS else "at most "
        return f"{most}about {seconds(max(1.0, self.to_go_s))} to go"

    def _shuffled(self, wanted: set[tuple[str, str]]) -> list[Arm]:
        """Groups in random order, and so the arms of each, which stay beside what they are
        compared with."""
        groups = sorted({group for group, _ in wanted})
        self._order.shuffle(groups)
        order: list[Arm] = []
        for group in groups:
            arms = [arm for arm in self.arms if arm.group == group and arm.key in wanted]
            self._order.shuffle(arms)
            order += arms
        return order

    def _decided(self, arm: Arm) -> bool:
        if self.against(arm) is None:
            return len(self.runs[arm.key]) >= statistics.MIN_PAIRS
        return statistics.decided(self.ratio(arm), self.pairs(arm))

    def _stretch_s(self, overhead_s: float) -> float:
        arms = max(1, len(self._alive()))
        left_s = self.until - time.monotonic() - _ROUNDS * overhead_s
        return min(_LONGEST_S, max(_SHORTEST_S, left_s / (_ROUNDS * arms)))

    def _in_fork(
        self, arm: Arm, body: Callable[[], dict[str, Any]], what: str, limit_s: float = _LIMIT_S
    ) -> Any:
        text = f"{what}: {arm.name}" + (f" ({arm.group})" if arm.group else "")
        self.say(text)
        try:
            if not self._own_process:
                return here(body)
            return forked(body, limit_s, lambda: self.say(text))
        except ArmError as error:
            self.failed[arm.key] = str(error)
            return None
