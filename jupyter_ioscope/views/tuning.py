"""A search for workers x prefetch: as text, as a table, and as a heat map."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from jupyter_ioscope.model.tuning import Tuning
from jupyter_ioscope.units import bytes_text, seconds, significant
from jupyter_ioscope.views.figures import base_figure
from jupyter_ioscope.views.html import comparison_html
from jupyter_ioscope.views.search import headline, how_searched, notes_of, setting_text
from jupyter_ioscope.views.text import WIDTH, comparison_text, table_lines
from jupyter_ioscope.views.words import clean, clean_lines, wrap

_COLUMNS = ("setting", "samples/s", "predicted", "first batch", "peak memory")


def tuning_text(tuning: Tuning) -> str:
    """A search as lines of at most 100 columns."""
    return "\n".join(_lines(tuning)) + "\n"


def _lines(tuning: Tuning) -> Iterator[str]:
    yield from wrap(headline(tuning), WIDTH)
    yield from table_lines([_COLUMNS, *_rows(tuning)])
    for note in (*how_searched(tuning), *notes_of(tuning)):
        yield from wrap(note, WIDTH, "  Note: ", "    ")
    if tuning.code:
        yield "  Code:"
        yield from (f"    {line}" for line in clean_lines(tuning.code, 1000).split("\n"))
    if tuning.comparison is not None:
        yield comparison_text(tuning.comparison).rstrip("\n")


def _rows(tuning: Tuning) -> Iterator[tuple[str, ...]]:
    for row in tuning.tried:
        marks = " (as it is)" * (row.setting == tuning.current)
        marks += " (best)" * (row.setting == tuning.best)
        yield (
            setting_text(row.setting) + marks,
            significant(row.samples_per_s),
            significant(row.predicted) if tuning.predicted else "–",
            seconds(row.first_batch_s),
            bytes_text(row.peak_memory_bytes),
        )


def tuning_html(tuning: Tuning) -> str:
    """A search as an HTML fragment without scripts."""
    head, *rows = [_COLUMNS, *_rows(tuning)]
    lines = [f"<tr>{''.join(f'<th>{escape(text)}</th>' for text in head)}</tr>"]
    lines += [f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in rows]
    pieces = [f"<p><b>{escape(headline(tuning))}</b></p>", f"<table>{''.join(lines)}</table>"]
    notes = (*how_searched(tuning), *notes_of(tuning))
    pieces += [f"<p><small>Note: {escape(note)}</small></p>" for note in notes]
    if tuning.code:
        pieces.append(f"<pre>{escape(clean_lines(tuning.code, 1000))}</pre>")
    if tuning.comparison is not None:
        pieces.append(comparison_html(tuning.comparison))
    return '<div style="max-width:880px">' + "\n".join(pieces) + "</div>"


def tuning_figure(tuning: Tuning) -> Any:
    """Heat map of the predicted throughput, with what was timed written into its cells.

    Raises:
        MissingPackageError: plotly is not installed.
    """
    rows = [row for row in tuning.predicted if row.setting.workers]
    workers = sorted({row.setting.workers for row in rows})
    ahead = sorted({row.setting.prefetch for row in rows})
    values = {(row.setting.workers, row.setting.prefetch): row.samples_per_s for row in rows}
    timed = {(row.setting.workers, row.setting.prefetch): row.samples_per_s for row in tuning.tried}
    grid = [[_whole(values.get((w, p))) for w in workers] for p in ahead]
    words = [[_cell(timed.get((w, p))) for w in workers] for p in ahead]
    heat = {
        "type": "heatmap",
        "x": [str(w) for w in workers],
        "y": [str(p) for p in ahead],
        "z": grid,
        "text": words,
        "texttemplate": "%{text}",
        "colorscale": "Cividis",
        "colorbar": {"title": {"text": "predicted<br>samples/s"}},
        "hovertemplate": "%{x} workers, %{y} ahead<br>predicted %{z} samples/s<br>%{text}"
        "<extra></extra>",
    }
    layout = {
        "xaxis": {"title": {"text": "num_workers"}, "type": "category"},
        "yaxis": {"title": {"text": "prefetch_factor"}, "type": "category"},
    }
    return base_figure([heat], layout, clean(headline(tuning), 120), rows)


def _whole(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _cell(value: float | None) -> str:
    return "" if value is None else f"timed: {significant(value)}"
