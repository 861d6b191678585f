"""A search for workers x prefetch: what it found in words, and as the page draws it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jupyter_ioscope.model.prediction import Setting
from jupyter_ioscope.model.tuning import Tuning
from jupyter_ioscope.trials.statistics import MIN_PAIRS
from jupyter_ioscope.units import percent, seconds, significant
from jupyter_ioscope.views.comparison import headline as comparison_headline
from jupyter_ioscope.views.shapes import IComparison, IGrid, IGridCell, IGridRow
from jupyter_ioscope.views.words import clean, clean_lines

_LEFT_OUT = 4


def headline(tuning: Tuning) -> str:
    """What to use, in a few words."""
    if tuning.cancelled:
        return f"Cancelled: of what was tried, {setting_text(tuning.best)} was best"
    if not tuning.changed and len(tuning.tried) < 2:
        return (
            f"Not enough time: only {setting_text(tuning.current)}, the loader as it is, was timed"
        )
    if not tuning.changed and (tried := _unproven(tuning)):
        return (
            f"Not proven: {tried} looked best in the search, and the time was too short for pairs "
            "that show it"
        )
    if not tuning.changed:
        undecided = tuning.comparison is not None and tuning.comparison.verdict == "undecided"
        others = len(tuning.tried) - 1
        if undecided:
            why = "a gain was neither proven nor ruled out"
        elif others == 1:
            why = "the one other setting that was tried is not better"
        else:
            why = f"none of {others} others that were tried is better"
        return f"Keep {setting_text(tuning.current)}: {why}"
    found = tuning.comparison
    told = f": {comparison_headline(found)}" if found is not None else ""
    kept = ", kept between epochs," if tuning.keep_workers else ""
    if tuning.best == tuning.current:
        return f"Keep {setting_text(tuning.best)}, and the workers between epochs{told}"
    return f"Use {setting_text(tuning.best)}{kept} instead of {setting_text(tuning.current)}{told}"


def _unproven(tuning: Tuning) -> str:
    """The setting for which the final pairs were too few to decide anything; empty without one.
    It need not be the fastest: of settings that count as equal the cheapest is compared."""
    found = tuning.comparison
    if found is None or found.verdict != "undecided" or found.pairs >= MIN_PAIRS:
        return ""
    return clean(found.arms[1].label, 80)


def setting_text(setting: Setting) -> str:
    if not setting.workers:
        return "no workers"
    return f"{setting.workers} worker{'s' * (setting.workers > 1)} × {setting.prefetch} ahead"


def how_searched(tuning: Tuning) -> Iterator[str]:
    yield (
        f"Settings within {percent(tuning.margin)} of the fastest count as equal, and the one with "
        f"the fewest workers is taken; {seconds(tuning.seconds)} in all."
    )
    yield clean(tuning.isolation_text, 400)


def notes_of(tuning: Tuning) -> Iterator[str]:
    for row in tuning.left_out[:_LEFT_OUT]:
        yield clean(f"Left out, {setting_text(row.setting)}: {row.reason}", 400)
    if (more := len(tuning.left_out) - _LEFT_OUT) > 0:
        yield f"{more} more settings were left out."
    for note in tuning.notes:
        yield clean(note, 400)


def tuning_payload(tuning: Tuning) -> IComparison:
    """`IComparison` of payload.ts, with the grid of settings; the final A/B is one of its own."""
    found = tuning.comparison
    return IComparison(
        verdict=found.verdict if found is not None and tuning.changed else "same",
        title="Workers × batches ahead",
        headline=headline(tuning),
        lines=[f"{len(tuning.tried)} settings were timed, {len(tuning.predicted)} predicted."],
        arms=[],
        dots=[],
        ticks=[],
        code=clean_lines(tuning.code, 1000),
        notes=list(notes_of(tuning)),
        how=list(how_searched(tuning)),
        grid=_grid(tuning),
    )


def _grid(tuning: Tuning) -> IGrid:
    predicted = {row.setting: row.samples_per_s for row in tuning.predicted}
    timed = {row.setting: row.samples_per_s for row in tuning.tried}
    settings = [*predicted, *timed]
    columns = sorted({row.workers for row in settings})
    rows = sorted({row.prefetch for row in settings})
    top = max((*predicted.values(), *timed.values()), default=0.0)
    order = tuning.current.in_order
    return IGrid(
        corner="batches ahead \\ workers",
        columns=[str(workers) for workers in columns],
        rows=[
            IGridRow(
                label=str(ahead),
                cells=[
                    _grid_cell(Setting(workers, ahead, order), predicted, timed, top, tuning.best)
                    for workers in columns
                ],
            )
            for ahead in rows
        ],
    )


def _grid_cell(
    setting: Setting,
    predicted: Mapping[Setting, float],
    timed: Mapping[Setting, float],
    top: float,
    best: Setting,
) -> IGridCell:
    told, seen = predicted.get(setting), timed.get(setting)
    value = told if seen is None else seen
    texts = []
    if told is not None:
        texts.append(f"predicted {significant(told)}")
    if seen is not None:
        texts.append(f"timed {significant(seen)}")
    title = f"{setting_text(setting)}: {', '.join(texts)} samples/s" if texts else ""
    return IGridCell(
        text="" if value is None else significant(value),
        title=title,
        level=-1.0 if value is None or top <= 0 else round(value / top, 3),
        timed=seen is not None,
        best=setting == best,
    )
