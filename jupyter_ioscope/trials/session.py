"""One comparison from start to end: checks, pilots, pairs, and what they show."""

from __future__ import annotations

import math

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.model.comparison import Comparison
from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.delivery import Limit
from jupyter_ioscope.trials.outcome import Cancelled
from jupyter_ioscope.trials.pairs import Pairs
from jupyter_ioscope.trials.plan import (
    Pilot,
    epochs_plan,
    first_epoch,
    is_short,
    pilot_plan,
    read_before,
    read_once,
    rounds_of,
    steady_plan,
)
from jupyter_ioscope.trials.result import Draft, comparison
from jupyter_ioscope.trials.runner import Runner
from jupyter_ioscope.trials.same_data import same_data
from jupyter_ioscope.trials.spec import LOOK_S, LoaderSpec
from jupyter_ioscope.trials.statistics import ALPHA
from jupyter_ioscope.trials.step import NO_STEP, Step
from jupyter_ioscope.trials.toggle import Toggle, agree_or_pass, refuse_or_pass
from jupyter_ioscope.trials.trial import Plan
from jupyter_ioscope.units import significant

_CHECKS = 15  # part of the budget in which samples of A may be gathered for comparing them
_LATE = 0.5  # of it, after which arm A is not read once more before the pairs
_LOOKS, _LEAST_LOOK_S = 10, 1.0  # part of it in which toggles may look at samples


class Session:
    """One comparison from start to end."""

    def __init__(
        self,
        runner: Runner,
        specs: tuple[LoaderSpec, LoaderSpec],
        toggles: tuple[Toggle, ...],
        labels: tuple[str, str],
        cache: str,
        budget_s: float,
        step: Step = NO_STEP,
        alpha: float = ALPHA,
    ) -> None:
        self.runner, self.specs, self.toggles = runner, specs, toggles
        self.cold, self.budget_s, self.step = cache == "cold", budget_s, step
        names = tuple(toggle.name for toggle in toggles)
        self.draft = Draft(Pairs(specs, self.cold, alpha), labels, names)

    def run(self) -> Comparison:
        try:
            self._prepare()
            self._measure()
        except Cancelled:
            if not self.draft.pairs.complete:
                self.runner.reporter.last("cancelled", "cancelled")
                raise TrialError("cancelled before the first pair of trials was complete") from None
            return self._finished(cancelled=True)
        return self._finished(cancelled=False)

    def _finished(self, cancelled: bool) -> Comparison:
        isolation, reporter = self.runner.isolation, self.runner.reporter
        made = comparison(self.draft, isolation.rung, isolation.text, reporter.age_s(), cancelled)
        reporter.last("cancelled" if cancelled else "done", made.verdict)
        return made

    def _prepare(self) -> None:
        """Make arm B, and see that both arms work and deliver the same samples."""
        spec_a, spec_b = self.specs
        reporter = self.runner.reporter
        agree_or_pass(self.toggles)
        unwritten = []
        look_s = self._look_s()
        for toggle in self.toggles:
            refuse_or_pass(toggle, spec_b)
            if toggle.learn is None or toggle.apply_learnt is None:
                spec_b = toggle.apply(spec_b)
            else:
                reporter.stage("preparing", f"seeing whether {toggle.name} applies")
                said = (spec_b.before, spec_b.written)
                spec_b = toggle.apply_learnt(spec_b, self.runner.learn(toggle, spec_b, look_s))
                unwritten += [toggle] if said == (spec_b.before, spec_b.written) else []
        self.specs = (spec_a, spec_b)
        self.draft.pairs.specs = self.specs
        codes = [code_of(spec_a, spec_b)]
        codes += [toggle.code(spec_b) for toggle in unwritten]
        self.draft.code = "\n\n".join(code for code in codes if code)
        reporter.stage("checking", "comparing the samples of both arms")
        longest_s = min(Limit().seconds, self.budget_s / _CHECKS)
        self.draft.same_data = same_data(
            self.runner.deliver, spec_a, spec_b, bool(self.toggles), longest_s
        )

    def _look_s(self) -> float:
        """How long a toggle may look at samples: all of them together a tenth of the budget."""
        looking = sum(toggle.learn is not None for toggle in self.toggles)
        return min(LOOK_S, max(_LEAST_LOOK_S, self.budget_s / _LOOKS / max(1, looking)))

    def _measure(self) -> None:
        spec_a, spec_b = self.specs
        pairs = self.draft.pairs
        plan, files = self._warmed(*self._plan())
        pairs.files = sorted(files)
        if self.cold and files:
            pairs.warm_rate = self._warm_rate(plan)
        pairs.run(self.runner, plan, self.budget_s)
        said = [*dict.fromkeys((*spec_a.notes, *spec_b.notes)), *self.draft.notes]
        said += self.runner.said(self.step)
        counts = {trial.samples for trial in pairs.trials}
        if plan.mode == "steady" and len(counts) == 1:
            said.append(f"Every trial timed the same {counts.pop():,} samples, after a warm-up.")
        said += pairs.doubts()
        self.draft.notes = tuple(said)

    def _warm_rate(self, plan: Plan) -> float:
        """Samples a second of arm A over what was just read; 0 where none of it was steady."""
        self.runner.reporter.stage("preparing", "arm A with a warm cache")
        try:
            return self.runner.trial("A", self.specs[0], plan, -1).samples_per_s
        except TimeoutError:
            return 0.0

    def _warmed(
        self, plan: Plan, pilots: tuple[Pilot, Pilot], files: set[str]
    ) -> tuple[Plan, set[str]]:
        """The plan, once everything that it will read was read before; all files of that."""
        spec_a, spec_b = self.specs
        # Changed libraries, too, may convert or keep what is to be there before anything is timed.
        changed = spec_a.dataset is not spec_b.dataset or spec_a.in_child != spec_b.in_child
        # A loader that opens no file has no page cache to fill: its pilots were its first passes.
        if not files and not changed:
            return plan, files
        batch_samples = max(pilot.batch_samples for pilot in pilots)
        rounds = rounds_of(self.specs, batch_samples)
        known = read_before(plan, pilots, rounds, each=changed)
        if known is not None:
            return known, files
        self.runner.reporter.stage("preparing", "one untimed pass")
        # Late in a small budget pairs tell more: how much of A's files is cached is proven anyway.
        late = self.runner.reporter.age_s() > _LATE * self.budget_s and not self.cold
        if files and not (late and changed):
            files |= self.runner.untimed("A", spec_a, plan)
        if changed:
            files |= self.runner.untimed("B", spec_b, plan)
        return plan, files

    def _plan(self) -> tuple[Plan, tuple[Pilot, Pilot], set[str]]:
        """Lengths from a pilot of each arm; the pilots, and the data files that they used."""
        spec_a, spec_b = self.specs
        reporter = self.runner.reporter
        seed, reads_files = self.runner.seed, self.runner.reads_files
        first = pilot_plan(spec_a, spec_b, seed, self.budget_s, reads_files)
        first = first._replace(step=self.step)
        reporter.stage("preparing", "pilot of arm A")
        pilot_a, files_a = self.runner.pilot("A", spec_a, first)
        reporter.stage("preparing", "pilot of arm B")
        pilot_b, files_b = self.runner.pilot("B", spec_b, first)
        pilots = (pilot_a, pilot_b)
        return self._length(first, pilots), pilots, files_a | files_b

    def _length(self, first: Plan, pilots: tuple[Pilot, Pilot]) -> Plan:
        left_s = max(0.0, self.budget_s - self.runner.reporter.age_s())
        short = any(is_short(p, spec) for p, spec in zip(pilots, self.specs, strict=True))
        reason = "An epoch ends before the loader is steady" if short else self._why_epochs()
        if reason:
            whole = self._epochs(first, pilots, left_s, short)
            if whole is not None:
                timed = "the first epoch of every run was" if self.cold else "whole epochs were"
                start = ", its start included" if self.cold else ""
                self._say(f"{reason}, so {timed} timed{start}.")
                return whole
            self._say(f"{reason}, and {self._why_steady(pilots)}.")
        plan = steady_plan(first, pilots, self.specs, left_s)
        return read_once(plan, pilots) if self.cold else plan

    def _why_epochs(self) -> str:
        """Why the arms differ in something that a steady stretch does not show, or ""."""
        spec_a, spec_b = self.specs
        for toggle in self.toggles:
            if toggle.end_point == "epochs":
                return f"{toggle.name} works between epochs"
        if spec_a.persistent_workers != spec_b.persistent_workers:
            return "persistent_workers works between epochs"
        return "Batches overtake each other" if spec_a.in_order != spec_b.in_order else ""

    def _epochs(
        self, first: Plan, pilots: tuple[Pilot, Pilot], left_s: float, short: bool
    ) -> Plan | None:
        """Whole epochs to time; None where they take too long, or would not show it."""
        whole = epochs_plan(first, pilots, left_s)
        if short:
            whole = whole or first._replace(mode="epochs")
        if whole is None or not self.cold:
            return whole
        return first_epoch(whole) if short or "between" not in self._why_epochs() else None

    def _why_steady(self, pilots: tuple[Pilot, Pilot]) -> str:
        """Why no whole epochs were timed, and what the ratio is then."""
        between = "between" in self._why_epochs()
        longest = max(pilot.epoch_s for pilot in pilots)
        span = f"about {significant(longest, 2)} s" if math.isfinite(longest) else "endless"
        why = f"an epoch ({span}) is too long to time several in this budget"
        if self.cold and between:
            why = "what a second one reads is not cold"
        left = (
            "that of the steady part, without its gain"
            if between
            else "that of a part of it, in which slow batches may be missing"
        )
        return f"{why}: the ratio is {left}"

    def _say(self, text: str) -> None:
        self.draft.notes = (*self.draft.notes, text)
