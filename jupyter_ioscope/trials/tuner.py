"""Finds the number of workers and of batches ahead that a loader needs, by timing few of them."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.what_if import WhatIf
from jupyter_ioscope.errors import InputError, IoscopeError, NotMeasuredError, TrialError
from jupyter_ioscope.model.comparison import Comparison
from jupyter_ioscope.model.files import load
from jupyter_ioscope.model.prediction import Predicted, Prediction, Setting
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.tuning import LeftOut, Tried, Tuning
from jupyter_ioscope.trials.alone import alone
from jupyter_ioscope.trials.child import Job
from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.compare import SILENCE_S, check_budget
from jupyter_ioscope.trials.isolation import Isolation
from jupyter_ioscope.trials.outcome import Cancelled
from jupyter_ioscope.trials.profiled import profiled
from jupyter_ioscope.trials.progress import Progress, Reporter
from jupyter_ioscope.trials.room import Room, room_for
from jupyter_ioscope.trials.runner import Runner
from jupyter_ioscope.trials.search import MARGIN, Search, grid
from jupyter_ioscope.trials.session import Session
from jupyter_ioscope.trials.spec import LoaderSpec, spec_of
from jupyter_ioscope.trials.step import NO_STEP, Step
from jupyter_ioscope.trials.toggles import pin_memory
from jupyter_ioscope.trials.trial import Plan

MOST_RUNS = 6
# Of the budget: the profile, one timed run, and all until the pairs begin.
_PROFILE_PART, _RUN_PART, _SEARCH_PART = 0.12, 0.06, 0.45
_LEAST_RUN_S, _MOST_RUN_S = 0.3, 2.0
_RUN_BATCHES = 20
_LEAST_FINAL_S = 4.0
_PINNING = (
    "pin_memory was not searched: these runs copy nothing to the device, so they would show what "
    "pinning costs and not what it brings. Time your own step with and without it."
)
_RESTARTS = 0.05  # of the loop's time, from which on workers are worth keeping between epochs


def tune(
    loader: Any,
    budget_s: float = 60.0,
    profile: Profile | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: threading.Event | None = None,
) -> Tuning:
    """Search workers x prefetch for `loader`, and prove the result against the loader as it is.

    A profile feeds a model of the loader; the model ranks the settings; the most promising ones,
    at most six, are timed in processes of their own; the last part of the budget goes into an A/B
    comparison of the best against the loader as it is. With a `profile` of the user's loop each
    batch is followed by a stand-in for its step, so that a loader which keeps up is left alone.

    Setting `cancel` ends all processes within a second; the result then rests on the runs made.

    Raises:
        InputError: `loader` is no torch DataLoader, or the budget is not a number above 0.
        TrialError: the loader fails in every setting, or another comparison is running.
    """
    check_budget(budget_s)
    spec = spec_of(loader)
    if spec.direct:
        raise InputError("a loop over a dataset itself has no workers to tune: give a DataLoader")
    reporter = Reporter(on_progress, budget_s)
    with alone(), Isolation() as isolation:
        runner = Runner(isolation, reporter, cancel, SILENCE_S)
        return _Tuner(runner, spec, budget_s, profile).run()


class _Tuner:
    def __init__(
        self, runner: Runner, spec: LoaderSpec, budget_s: float, profile: Profile | None
    ) -> None:
        self.runner, self.spec, self.budget_s = runner, spec, budget_s
        self.step = step_of(profile) if profile is not None else NO_STEP
        self.given = profile
        self.current = setting_of(spec)
        self.tried: list[Tried] = []
        self.left_out: list[LeftOut] = []
        self.notes: list[str] = []
        self.predicted: tuple[Predicted, ...] = ()

    def run(self) -> Tuning:
        best, comparison, cancelled, keep = self.current, None, False, False
        try:
            search = self._search()
            best = search.best()
            keep = self._restarts_cost(best)
            comparison = self._proven(best, keep)
        except Cancelled:
            cancelled, keep = True, False
            best = self._best_tried()
        if comparison is not None and comparison.cancelled:
            cancelled, keep = True, False
        elif comparison is not None and not self._stands(best, comparison):
            self.notes.append(_unconfirmed(comparison))
            best, keep = self.current, False
        return self._finished(best, keep, comparison, cancelled)

    def _search(self) -> Search:
        what_if = self._model()
        room = room_for(what_if.facts.profile if what_if is not None else None)
        cores = what_if.facts.cores if what_if is not None else room.cores
        usable = self._usable(room, cores)
        self.predicted = tuple(what_if.predict(row) for row in usable) if what_if else ()
        believed = (
            {row.setting: row.samples_per_s for row in self.predicted}
            if what_if
            else dict.fromkeys(usable, 1.0)
        )
        search = Search(believed, self.current, MOST_RUNS, cores)
        while (setting := search.next()) is not None and self._time_for_a_run():
            search.note(setting, self._timed(setting, believed.get(setting, 0.0)))
        if not any(search.measured.values()):
            raise TrialError("the loader gave no steady stretch in any setting: is it very short?")
        return search

    def _time_for_a_run(self) -> bool:
        # The A/B at the end needs what is left; the loader as it is is timed in any case.
        return not self.tried or self.runner.reporter.age_s() < _SEARCH_PART * self.budget_s

    def _model(self) -> WhatIf | None:
        """The model of a profile with workers: the given one, else one made now."""
        profile = self.given
        if profile is None or not any(row.num_workers for row in profile.loaders):
            profile = self._profile() or profile
        if profile is None:
            return None
        try:
            return WhatIf(Facts(profile))
        except NotMeasuredError as error:
            self.notes.append(f"No model could be made, so the search was blind: {error}.")
            return None

    def _profile(self) -> Profile | None:
        """Record the loader with workers: without any their hand-over does not show."""
        self.runner.reporter.stage("preparing", "profiling the loader")
        spec = self.spec
        if not spec.num_workers:
            spec = with_setting(spec, Setting(2, 2, spec.in_order))
        path = os.path.join(self.runner.isolation.folder, "tuned.ioscope.json")
        arguments = (
            spec,
            self.runner.seed,
            self.budget_s * _PROFILE_PART,
            2 * spec.discard + 4,
            path,
            self.step,
        )
        try:
            self.runner.run_job(Job("A", profiled, arguments, needs_child=True))
            return load(path)
        except (TrialError, IoscopeError) as error:
            self.notes.append(f"No profile with workers could be made: {error}")
            return None

    def _usable(self, room: Room, cores: float) -> Sequence[Setting]:
        settings = grid(cores, self.current, room.most_workers)
        usable = []
        for row in settings:
            reason = "" if row == self.current else room.refuses(row)
            if reason:
                self.left_out.append(LeftOut(row, reason))
            else:
                usable.append(row)
        return usable

    def _timed(self, setting: Setting, believed: float) -> float:
        """Samples per second of one run; 0 where it failed."""
        self.runner.reporter.stage("running", f"timing {_words(setting)}")
        spec = with_setting(self.spec, setting)
        run_s = min(_MOST_RUN_S, max(_LEAST_RUN_S, self.budget_s * _RUN_PART))
        plan = Plan(
            mode="steady",
            seed=self.runner.seed,
            discard=spec.discard,
            seconds=run_s,
            batches=max(2, min(_RUN_BATCHES, 2 * spec.num_workers)),
            max_s=8 * run_s + 4,
            step=self.step,
        )
        try:
            found = self.runner.measured("A" if setting == self.current else "B", spec, plan)
        except TrialError as error:
            if setting == self.current:
                raise
            self.left_out.append(LeftOut(setting, str(error)))
            return 0.0
        self.tried.append(
            Tried(setting, found.samples_per_s, believed, found.first_batch_s, found.peak_bytes)
        )
        return found.samples_per_s

    def _restarts_cost(self, best: Setting) -> bool:
        """Whether a given profile of several epochs shows that starting workers again matters."""
        if self.given is None or not best.workers or self.spec.persistent_workers:
            return False
        try:
            facts = Facts(self.given)
            times = facts.start_ups_ns if facts.workers else []
            return len(times) > 1 and sum(times[1:]) >= _RESTARTS * facts.loop.wall_ns
        except NotMeasuredError:
            return False

    def _proven(self, best: Setting, keep: bool) -> Comparison | None:
        """The A/B of the best against the loader as it is; None where they are the same."""
        left_s = self.budget_s - self.runner.reporter.age_s()
        if best == self.current and not keep:
            return None
        specs = (self.spec, with_setting(self.spec, best, keep))
        labels = ("as it is", _words(best) + ", kept between epochs" * keep)
        whole_s = self.runner.reporter.age_s() + max(_LEAST_FINAL_S, left_s)
        session = Session(self.runner, specs, (), labels, "warm", whole_s, self.step)
        try:
            made = session.run()
        except TrialError:
            if self.runner.watch.cancelled():
                raise Cancelled from None  # before the first pair: what was tried is still known
            raise
        return replace(made, predicted=None if keep else self._foretold(best))

    def _foretold(self, best: Setting) -> Prediction | None:
        """What the model said of the best against the loader as it is."""
        known = {row.setting: row for row in self.predicted}
        now, new = known.get(self.current), known.get(best)
        if now is None or new is None or min(now.samples_per_s, new.samples_per_s) <= 0:
            return None
        ratio = new.samples_per_s / now.samples_per_s
        errors = [math.log(row.high / row.samples_per_s) for row in (now, new)]
        spread = math.exp(math.hypot(*errors))
        how = "A model of the loader, fed by one profile of it."
        return Prediction(ratio, ratio / spread, ratio * spread, how)

    def _stands(self, best: Setting, comparison: Comparison) -> bool:
        """Whether the pairs bear out what single runs suggested: faster, or as fast with less."""
        cheaper = (best.workers, best.prefetch) < (self.current.workers, self.current.prefetch)
        return comparison.verdict == "faster" or (comparison.verdict == "same" and cheaper)

    def _best_tried(self) -> Setting:
        search = Search({row.setting: 1.0 for row in self.tried}, self.current)
        for row in self.tried:
            search.note(row.setting, row.samples_per_s)
        return search.best()

    def _finished(
        self, best: Setting, keep: bool, comparison: Comparison | None, cancelled: bool
    ) -> Tuning:
        reporter = self.runner.reporter
        reporter.last("cancelled" if cancelled else "done", _words(best))
        if self.step != NO_STEP:
            self.notes.append(self.step.text())
        if best.workers and not self.spec.pin_memory and pin_memory.accelerator():
            self.notes.append(_PINNING)
        return Tuning(
            current=self.current,
            best=best,
            margin=MARGIN,
            tried=tuple(self.tried),
            predicted=self.predicted,
            left_out=tuple(self.left_out),
            comparison=comparison,
            code=code_of(self.spec, with_setting(self.spec, best, keep)),
            seconds=reporter.age_s(),
            isolation_text=self.runner.isolation.text,
            notes=tuple(self.notes),
            cancelled=cancelled,
            keep_workers=keep,
        )


def _unconfirmed(comparison: Comparison) -> str:
    """Why the loader stays as it is although arm B was expected to be better."""
    label, same = comparison.arms[1].label, comparison.same_data
    if same.verdict == "different":
        return f"With {label} the loader delivers something else, so it stays as it is: {same.text}"
    return (
        f"In the search {label} looked best; pairs on the same samples did not confirm it "
        f"({comparison.verdict}), so the loader stays as it is."
    )


def _words(setting: Setting) -> str:
    if not setting.workers:
        return "no workers"
    workers = f"{setting.workers} worker" + ("s" if setting.workers > 1 else "")
    return f"{workers}, {setting.prefetch} ahead"


def setting_of(spec: LoaderSpec) -> Setting:
    return Setting(spec.num_workers, spec.prefetch or 2, spec.in_order)


def with_setting(spec: LoaderSpec, setting: Setting, keep: bool = False) -> LoaderSpec:
    """The spec with another number of workers and batches ahead; `keep` them between epochs."""
    return spec.changed(
        num_workers=setting.workers,
        prefetch_factor=setting.prefetch if setting.workers else None,
        persistent_workers=(spec.persistent_workers or keep) and setting.workers > 0,
        in_order=setting.in_order,
    )


def step_of(profile: Profile) -> Step:
    """The usual step of the loop of a profile."""
    try:
        rows = Facts(profile).batches
    except (NotMeasuredError, InputError):
        return NO_STEP
    if not rows:
        return NO_STEP
    cpu_s = median(min(row.step_cpu_ns, row.step_ns) for row in rows) / 1e9
    whole_s = median(row.step_ns for row in rows) / 1e9
    return Step(cpu_s, max(0.0, whole_s - cpu_s))
