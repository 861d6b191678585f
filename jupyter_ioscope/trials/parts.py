"""Several toggles at once: each alone against the loader as it is, then all of them together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from jupyter_ioscope.errors import InputError, TrialError
from jupyter_ioscope.model.comparison import Comparison
from jupyter_ioscope.model.parts import Parts
from jupyter_ioscope.trials.compare import check_budget, compare
from jupyter_ioscope.trials.progress import Progress
from jupyter_ioscope.trials.statistics import ALPHA
from jupyter_ioscope.trials.step import NO_STEP, Step
from jupyter_ioscope.trials.toggle import Toggle, chosen


def compare_parts(
    loader: Any,
    toggles: Iterable[str | Toggle],
    cache: str = "warm",
    budget_s: float = 120.0,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: threading.Event | None = None,
    step: Step = NO_STEP,
) -> Parts:
    """One comparison a toggle and one of all together, each with its part of the budget.

    A toggle that does not apply, or fails, is told with its reason and left out of the whole.

    Raises:
        InputError: fewer than two toggles, or an argument that `compare` refuses.
        TrialError: none of the toggles could be tried.
    """
    check_budget(budget_s)
    picked = chosen(toggles)
    if len(picked) < 2:
        raise InputError(f"give two toggles or more, got {len(picked)}: compare() tries one")
    count = len(picked) + 1
    alone: list[Comparison] = []
    worked: list[Toggle] = []
    failed: list[tuple[str, str]] = []

    def run(some: tuple[Toggle, ...], label: str, number: int) -> Comparison:
        return compare(
            loader,
            toggles=some,
            cache=cache,
            budget_s=budget_s / count,
            on_progress=_scaled(on_progress, number, count),
            cancel=cancel,
            label_b=label,
            step=step,
            alpha=ALPHA / count,
        )

    for number, toggle in enumerate(picked):
        if cancel is not None and cancel.is_set():
            return Parts(tuple(alone), None, tuple(failed), cancelled=True)
        try:
            alone.append(run((toggle,), toggle.title, number))
            worked.append(toggle)
        except TrialError as error:
            failed.append((toggle.name, str(error)))
    if not alone:
        raise TrialError("; ".join(f"{name}: {reason}" for name, reason in failed))
    together = None
    if len(worked) > 1:
        try:
            together = run(tuple(worked), "all together", count - 1)
        except TrialError as error:
            failed.append(("all together", str(error)))
    cancelled = any(row.cancelled for row in (*alone, *filter(None, [together])))
    return Parts(tuple(alone), together, tuple(failed), cancelled)


def _scaled(
    on_progress: Callable[[Progress], None] | None, number: int, count: int
) -> Callable[[Progress], None] | None:
    """Progress of one comparison as progress of all."""
    if on_progress is None:
        return None

    def scaled(progress: Progress) -> None:
        text = f"{number + 1} of {count}: {progress.text}"
        last = number == count - 1
        state = "running" if progress.state == "done" and not last else progress.state
        whole = (number + progress.fraction) / count
        on_progress(replace(progress, state=state, text=text, fraction=whole))

    return scaled
