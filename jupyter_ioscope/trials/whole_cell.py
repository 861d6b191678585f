"""Trials that run the user's whole cell again, instead of drawing batches from its loader."""

from __future__ import annotations

import shutil
import tempfile
import threading
from dataclasses import replace
from typing import Any

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.trials.cell_code import CellCode
from jupyter_ioscope.trials.cell_loader import Swap
from jupyter_ioscope.trials.cell_run import parallel_work, run_cell
from jupyter_ioscope.trials.child import Job
from jupyter_ioscope.trials.effects import Effects
from jupyter_ioscope.trials.isolation import Isolation
from jupyter_ioscope.trials.progress import Reporter
from jupyter_ioscope.trials.runner import Runner
from jupyter_ioscope.trials.spec import LOOK_S, LoaderSpec
from jupyter_ioscope.trials.step import Step
from jupyter_ioscope.trials.tally import Plan
from jupyter_ioscope.trials.toggle import Toggle

_THREADS_S = 5.0  # parallel work of milliseconds that is not done by then hangs


class CellRunner(Runner):
    """Its timed runs are runs of the cell; looks at data are made as in other comparisons."""

    def __init__(
        self,
        isolation: Isolation,
        reporter: Reporter,
        cancel: threading.Event | None,
        silence_s: float,
        cell: CellCode,
        toggles: tuple[Toggle, ...],
    ) -> None:
        # What comes before the loop may take as long as the whole recorded run.
        super().__init__(isolation, reporter, cancel, silence_s + cell.took_s)
        self.cell, self.toggles = cell, toggles
        self.effects = Effects()
        self._learnt: dict[str, dict[str, Any]] = {}
        self._threads = -1
        isolation.text = (
            f"Every trial ran {cell.name} as a whole, from its first line on, in a fresh forked "
            "child of this process with a copy of all your variables; yours stayed as they were."
        )

    def learn(self, toggle: Toggle, spec: LoaderSpec, look_s: float = LOOK_S) -> dict[str, Any]:
        facts = self._learnt[toggle.name] = super().learn(toggle, spec, look_s)
        return facts

    def said(self, step: Step) -> list[str]:
        notes = ["Every trial is the cell itself, its own step included: time from batch to batch."]
        if 0 < self._threads < self.cell.threads:
            notes.append(
                "torch had one thread in these runs (its threads do not survive the copy of this "
                "process): a step that computes on the CPU took longer than in the notebook."
            )
        return [*notes, *self.effects.sentences()]

    def _timed(
        self, arm: str, spec: LoaderSpec, plan: Plan, learn: bool
    ) -> tuple[dict[str, Any], int]:
        swap: Swap = ()
        if arm == "B":
            swap = tuple((toggle, self._learnt.get(toggle.name)) for toggle in self.toggles)
        threads = self._usable_threads()
        notes = tempfile.mkdtemp(prefix="c", dir=self.isolation.folder)
        arguments = (self.cell, swap, plan, learn, threads, notes)
        try:
            job = Job(arm, run_cell, arguments, needs_child=True, takes_apart=True)
            found = self.isolation.run(job, self.watch)
        finally:
            self.effects.read(notes)
            shutil.rmtree(notes, ignore_errors=True)
        result = found[0]
        self.effects.lines, self.effects.displays = result["lines"], result["displays"]
        self.effects.gpu = self.effects.gpu or result["gpu"]
        return found

    def _usable_threads(self) -> int:
        """As many threads as torch uses in the kernel, if they work in a copy of it; else one."""
        if self._threads < 0:
            self._threads = self.cell.threads
            if self.cell.threads > 1:
                watch = replace(self.watch, silence_s=_THREADS_S)
                try:
                    job = Job("A", parallel_work, (self.cell.threads,), needs_child=True)
                    self.isolation.run(job, watch)
                except TrialError:
                    self._threads = 1
        return self._threads
