"""Compares two loaders, or a loader with itself plus toggles, on the user's own data."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from typing import Any

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model.comparison import Comparison
from jupyter_ioscope.trials.alone import alone
from jupyter_ioscope.trials.cell_code import CellCode
from jupyter_ioscope.trials.isolation import Isolation
from jupyter_ioscope.trials.progress import Progress, Reporter
from jupyter_ioscope.trials.runner import Runner
from jupyter_ioscope.trials.session import Session
from jupyter_ioscope.trials.spec import spec_of
from jupyter_ioscope.trials.statistics import ALPHA
from jupyter_ioscope.trials.step import NO_STEP, Step
from jupyter_ioscope.trials.toggle import Toggle, chosen
from jupyter_ioscope.trials.whole_cell import CellRunner

__all__ = ["Progress", "compare"]

SILENCE_S = 60.0  # an arm that gives no batch for this long is called hanging


def compare(
    loader: Any,
    b: Any = None,
    toggles: Iterable[str | Toggle] = (),
    cache: str = "warm",
    budget_s: float = 60.0,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: threading.Event | None = None,
    label_a: str | None = None,
    label_b: str | None = None,
    step: Step = NO_STEP,
    alpha: float = ALPHA,
    cell: CellCode | None = None,
) -> Comparison:
    """Time `loader` (arm A) against `b`, or against itself with `toggles` switched on (arm B).

    Both arms run in processes of their own, in pairs of random order, on the same samples; the
    user's loaders and random states stay as they are. `on_progress` is called from the calling
    thread at most four times a second. Any thread may call this.

    `step` stands in for the loop's own time with each batch, in both arms; without one the trials
    draw batches as fast as they come.

    With a `cell` every timed run is a run of that cell as a whole, with the arm's loader in the
    place of the recorded one, and `step` is not used; for toggles only.

    The interval misses the truth with probability `alpha` at most, however often it is looked at.

    Setting `cancel` ends all processes within a second. The result then holds the pairs that were
    complete, with `cancelled=True` and the verdict "undecided"; before the first pair TrialError is
    raised, because there is nothing to return.

    Raises:
        InputError: an argument cannot be used.
        TrialError: an arm failed, hangs or yields fewer samples; a toggle does not apply; the
            comparison was cancelled before its first pair; another comparison is running.
    """
    check_cache(cache)
    check_budget(budget_s)
    picked = chosen(toggles)
    if b is None and not picked:
        raise InputError("give b (another loader) or toggles (what to switch on), got neither")
    if b is not None and picked:
        names = ", ".join(toggle.name for toggle in picked)
        raise InputError(f"give either b or toggles, got b and toggles={names}; call twice instead")
    if cell is not None and b is not None:
        raise InputError("whole_cell compares toggles: give toggles instead of b")
    spec_a = spec_of(loader)
    if cell is not None and spec_a.direct:
        raise InputError("whole_cell needs a torch DataLoader: this loop iterates a dataset itself")
    spec_b = spec_of(b, "b") if b is not None else spec_a
    labels = (
        label_a or ("as it is" if picked else "A"),
        label_b or (" + ".join(toggle.title for toggle in picked) or "B"),
    )
    reporter = Reporter(on_progress, budget_s)
    with alone(), Isolation() as isolation:
        runner = _runner(isolation, reporter, cancel, cell, picked)
        specs = (spec_a, spec_b)
        return Session(runner, specs, picked, labels, cache, budget_s, step, alpha).run()


def _runner(
    isolation: Isolation,
    reporter: Reporter,
    cancel: threading.Event | None,
    cell: CellCode | None,
    toggles: tuple[Toggle, ...],
) -> Runner:
    if cell is None:
        return Runner(isolation, reporter, cancel, SILENCE_S)
    return CellRunner(isolation, reporter, cancel, SILENCE_S, cell, toggles)


def check_cache(cache: str) -> None:
    if cache not in ("warm", "cold"):
        raise InputError(f"cache must be 'warm' or 'cold', got {cache!r}")


def check_budget(budget_s: float) -> None:
    number = isinstance(budget_s, (int, float)) and not isinstance(budget_s, bool)
    if not number or not math.isfinite(budget_s) or budget_s <= 0:
        raise InputError(f"budget_s must be a number of seconds above 0, got {budget_s!r}")
