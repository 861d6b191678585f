"""A recording: one profile, what is read from it, and what is tried on its loader."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any

from jupyter_ioscope.capture.cells import CellMap
from jupyter_ioscope.capture.interrupts import held_interrupts
from jupyter_ioscope.capture.loaders.hf_datasets import Looped
from jupyter_ioscope.capture.profiler import CaptureOptions, Profiler, recording
from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.ending import profile_of
from jupyter_ioscope.errors import InputError, IoscopeError
from jupyter_ioscope.exports import Exports
from jupyter_ioscope.model import files
from jupyter_ioscope.model.comparison import Comparison, Offer
from jupyter_ioscope.model.diagnosis import Diagnosis, Waits
from jupyter_ioscope.model.profile import Cell, Cost, Profile
from jupyter_ioscope.model.readings import Series, Stacks
from jupyter_ioscope.model.records import Batch
from jupyter_ioscope.optional import ipython_shell, loaded

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from jupyter_ioscope.model.tuning import Tuning
    from jupyter_ioscope.trials.compare import Progress
    from jupyter_ioscope.trials.predict import Predictor

_NO_LOADER = (
    "this recording holds no DataLoader to compare (it was loaded from a file, or the loop used "
    "another kind of loader): call ioscope.compare(loader, toggles=...) or ioscope.tune(loader)"
)


class Recording(Exports):
    """One profile and what is read from it.

    A context manager while it records (`with ioscope.profile() as p:`); after that its
    properties answer. `loaders` are copies of the loaders that were iterated, for comparisons
    (empty when the recording was loaded from a file).
    """

    def __init__(self, options: CaptureOptions | None = None, cells: CellMap | None = None) -> None:
        self._options = options or CaptureOptions()
        self._cells = cells
        self._profiler: Profiler | None = None
        self._profile: Profile | None = None
        self._why_not = "this recording has not ended yet: leave the `with` block first"
        self.loaders: tuple[Any, ...] = ()
        self._numbered: dict[int, Any] = {}
        self.comparisons: list[Comparison] = []
        self.tunings: list[Tuning] = []
        self.results: list[Comparison | Tuning] = []  # both, in the order in which they ended
        self._saved_offers: tuple[Offer, ...] = ()
        self.variable = ""  # under which name the user finds this, if under any

    @classmethod
    def of(
        cls,
        profile: Profile,
        offers: tuple[Offer, ...] = (),
        comparisons: tuple[Comparison, ...] = (),
        tunings: tuple[Tuning, ...] = (),
    ) -> Recording:
        """A finished recording around a profile, with what was offered and tried when saved."""
        made = cls()
        made._profile = profile
        made._saved_offers = offers
        made.comparisons, made.tunings = list(comparisons), list(tunings)
        made.results = [*comparisons, *tunings]
        return made

    def start(self) -> None:
        """Begin to record.

        Raises:
            InputError: this recording was used before, or another one is running here.
        """
        if self._profiler is not None or self._profile is not None:
            raise InputError(
                "this recording was used before: make a new one with ioscope.profile()"
            )
        cells = self._cells if self._cells is not None else CellMap.from_shell(ipython_shell())
        profiler = Profiler(self._options, cells)
        try:
            with held_interrupts():
                profiler.start()
                self._profiler = profiler
        except BaseException:
            if self._profiler is not None:  # interrupted: nobody will stop what began
                self._profiler = None
                profiler.stop()
            raise

    def stop(self, error: BaseException | None = None, cell: Cell | None = None) -> None:
        """End the recording. `error` is the exception that ended the recorded code, if any.

        A mistake of our own raises nothing here, where the user's code goes on: `profile` then
        raises it. In a child that the recorded code forked nothing is ended: it is its parent's.

        Raises:
            InputError: nothing is being recorded.
        """
        try:
            self._stop(error, cell)
        except BaseException:
            if self._profiler is not None:  # a signal's handler raised before it was held back
                self._stop(error, cell)
            raise

    def _stop(self, error: BaseException | None, cell: Cell | None) -> None:
        with held_interrupts() as held:
            held.error_told = error is not None
            profiler, self._profiler = self._profiler, None
            if profiler is None:
                raise InputError("nothing is being recorded: call start() first")
            self._profile, self._why_not = profile_of(profiler, error, cell)
            if profiler.recorder is not None and self._profile is not None:
                self._keep(profiler.recorder.snapshots)

    def _keep(self, snapshots: Iterable[Any]) -> None:
        """`snapshots`: of every loader of the profile, None where there is none."""
        self._numbered = {n: one for n, one in enumerate(snapshots) if one is not None}
        kept = list(self._numbered.values())
        # DataLoaders keep the numbers they have among themselves.
        self.loaders = tuple(sorted(kept, key=lambda one: isinstance(one, Looped)))

    def __enter__(self) -> Recording:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop(value)

    def progress(self) -> tuple[int, float, float]:
        """While recording: (batches so far, batches per second, fraction of time waiting)."""
        recorder = self._profiler.recorder if self._profiler is not None else None
        return recorder.progress() if recorder is not None else (0, 0.0, 0.0)

    @property
    def profile(self) -> Profile:
        """The frozen profile.

        Raises:
            IoscopeError: the recording has not ended yet.
        """
        if self._profile is None:
            raise IoscopeError(self._why_not)
        return self._profile

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """What holds the loop back: findings ranked by what removing each would gain."""
        return diagnose(self.profile)

    @property
    def waits(self) -> Waits:
        """Where the time of the consumer and of every worker went."""
        return self.diagnosis.waits

    @property
    def batches(self) -> tuple[Batch, ...]:
        return self.profile.batches

    @property
    def series(self) -> Mapping[str, Series]:
        return self.profile.series

    @property
    def stacks(self) -> Stacks | None:
        return self.profile.stacks

    @property
    def cost(self) -> Cost:
        """What profiling itself used."""
        return self.profile.cost

    @property
    def main_loader(self) -> Any | None:
        """The copy of the loader that took most of the loop's time, or None: of a DataLoader, or of
        a dataset that is iterated itself."""
        spent: dict[int, int] = {}
        for batch in self.batches:
            taken = batch.step_end_ns - batch.wait_start_ns
            spent[batch.loader] = spent.get(batch.loader, 0) + taken
        best = max(spent, key=lambda number: spent[number], default=0)
        return self._numbered.get(best)

    @cached_property
    def offers(self) -> tuple[Offer, ...]:
        """The toggles for the main loader; those that were saved, if any, when there is no loader
        to try them on."""
        loader = self.main_loader
        # Trials need torch; a report never imports it for a loop that did without.
        if loader is None or (isinstance(loader, Looped) and loaded("torch.utils.data") is None):
            return self._saved_offers
        from jupyter_ioscope.trials.offers import offers

        findings = self.diagnosis.findings
        suggested = findings[0].toggles if findings else ()
        return offers(loader, suggested, self.profile, findings)

    def compare(
        self,
        toggles: Iterable[str],
        cache: str = "warm",
        budget_s: float = 60.0,
        on_progress: Callable[[Progress], None] | None = None,
        cancel: threading.Event | None = None,
        whole_cell: bool = False,
        loader: Any = None,
    ) -> Comparison:
        """Compare a recorded loader (the main one unless `loader` is given) as it is with the
        loader after `toggles`. "workers" without a number means as many as the profile of the main
        loader suggests.

        With `whole_cell` every trial is a run of the recorded cell itself, in a copy of this
        process, instead of a stand-in for its step. Files that it writes are put back; what else it
        does outside is named in the result.

        Raises:
            InputError: an argument cannot be used, or no notebook cell was recorded.
            TrialError: an arm failed, or the cell cannot be run in a copy of this process.
        """
        number = self._number_of(loader)
        from jupyter_ioscope.trials.compare import compare as run
        from jupyter_ioscope.trials.offers import fitted
        from jupyter_ioscope.trials.spec import spec_of
        from jupyter_ioscope.trials.toggle import chosen
        from jupyter_ioscope.trials.tuner import step_of

        not_while_recording()
        picked = chosen(toggles)
        recorded = self.loaders[number]
        predicted = None
        if recorded is self.main_loader:
            predictor = self._predictor(recorded)
            picked = fitted(picked, spec_of(recorded), predictor)
            predicted = predictor.together(picked)
        comparison = run(
            recorded,
            toggles=picked,
            cache=cache,
            budget_s=budget_s,
            on_progress=on_progress,
            cancel=cancel,
            step=step_of(self.profile),
            cell=self._cell_code(number) if whole_cell else None,
        )
        comparison = replace(comparison, predicted=predicted)
        self.comparisons.append(comparison)
        self.results.append(comparison)
        return comparison

    def _predictor(self, recorded: Any) -> Predictor:
        from jupyter_ioscope.trials.predict import Predictor
        from jupyter_ioscope.trials.spec import spec_of

        return Predictor(self.profile, spec_of(recorded), self.diagnosis.findings)

    def _number_of(self, loader: Any) -> int:
        """Which of the recorded loaders is meant; the main one when `loader` is None.

        Raises:
            InputError: it was not recorded.
        """
        if self.main_loader is None:
            raise InputError(_NO_LOADER)
        for number, one in enumerate(self.loaders):
            # What was kept is a copy of the user's loader around the same dataset.
            if one is self.main_loader if loader is None else _same(one, loader):
                return number
        raise InputError("this loader was not iterated in the recorded cell: run that cell again")

    def _cell_code(self, number: int) -> Any:
        """The recorded cell, ready to run again with another loader for that one."""
        from jupyter_ioscope.trials.cell_code import cell_of

        if isinstance(self.loaders[number], Looped):
            raise InputError("whole_cell needs a loop over a DataLoader, not over a dataset itself")
        return cell_of(self.profile, number, ipython_shell())

    def tune(
        self,
        budget_s: float = 60.0,
        on_progress: Callable[[Progress], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> Tuning:
        """Search workers x prefetch for the main loader, with a stand-in for the recorded step.

        Raises:
            InputError: no torch DataLoader was recorded, or `budget_s` cannot be used.
            TrialError: the loader failed in every setting.
        """
        if self.main_loader is None:
            raise InputError(_NO_LOADER)
        from jupyter_ioscope.trials.tuner import tune as run

        not_while_recording()
        tuning = run(self.main_loader, budget_s, self.profile, on_progress, cancel)
        self.tunings.append(tuning)
        if tuning.comparison is not None:
            self.comparisons.append(tuning.comparison)
            self.results.append(tuning.comparison)
        self.results.append(tuning)
        return tuning

    def figure(self, name: str) -> Any:
        """A plotly figure: "timeline", "ceilings", "batch_times", "workers", "comparison", or
        "tuning", the heat map of the last search."""
        if name == "tuning":
            from jupyter_ioscope.views.tuning import tuning_figure

            if not self.tunings:
                raise InputError("name='tuning': nothing was tuned yet; call .tune() first")
            return tuning_figure(self.tunings[-1])
        from jupyter_ioscope.views.figures import figure

        newest = self.comparisons[-1] if self.comparisons else None
        return figure(name, self.profile, self.diagnosis, newest)

    def show(self) -> None:
        """Draw the report under the cell, or print it where nothing can draw."""
        from jupyter_ioscope.interactive import show

        show(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the profile to a file that `ioscope.load` and the file viewer read."""
        from jupyter_ioscope.views.payload import report_payload

        shown = tuple(self.results)
        report = report_payload(self.profile, self.diagnosis, self.offers, shown, variable="")
        tried = tuple(self.comparisons), tuple(self.tunings)
        files.save(self.profile, path, dict(report), self.offers, *tried)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        if self._profile is None:
            return {"text/plain": repr(self)}
        from jupyter_ioscope.views.bundle import mime_bundle

        return dict(mime_bundle(*self._shown()))

    def __str__(self) -> str:
        if self._profile is None:
            return repr(self)
        from jupyter_ioscope.views.text import report_text

        return report_text(*self._shown())

    def _shown(
        self,
    ) -> tuple[Profile, Diagnosis, tuple[Offer, ...], tuple[Comparison | Tuning, ...], str]:
        tried = tuple(self.results)
        return self.profile, self.diagnosis, self.offers, tried, self.variable

    def __repr__(self) -> str:
        if self._profile is None:
            return f"<ioscope recording: {self._why_not}>"
        profile = self._profile
        return f"<ioscope recording, {len(profile.batches)} batches in {profile.wall_s:.1f} s>"


def not_while_recording() -> None:
    """Raises InputError while a profile is being recorded in this process."""
    if recording():
        raise InputError("a profile is being recorded here: compare after it has ended")


def last_recording() -> Recording:
    """The recording of the last cell with %%ioscope.

    Raises:
        InputError: there is none.
    """
    found = getattr(ipython_shell(), "user_ns", {}).get("_ioscope")
    if not isinstance(found, Recording):
        raise InputError("no cell was recorded yet: put %%ioscope on the cell with the loop first")
    return found


def _same(recorded: Any, loader: Any) -> bool:
    mine = loader if isinstance(recorded, Looped) else getattr(loader, "dataset", None)
    return recorded is loader or (mine is not None and recorded.dataset is mine)
