"""What each of several toggles brings, as a table: in a terminal, and in a saved notebook."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from jupyter_ioscope.model.comparison import Comparison
from jupyter_ioscope.model.parts import Parts
from jupyter_ioscope.units import NBSP, ratio, ratio_range
from jupyter_ioscope.views.comparison import headline as comparison_headline
from jupyter_ioscope.views.text import WIDTH, table_lines
from jupyter_ioscope.views.words import clean, fit, wrap

_COLUMNS = ("", "ratio", "interval", "verdict")
_LABEL = 40
_CORRECTED = (
    f"Every interval is wider than 95{NBSP}%, such that the chance of any of them missing the "
    f"truth is 5{NBSP}%."
)


def parts_text(parts: Parts) -> str:
    """The parts as lines of at most 100 columns."""
    rows = [(fit(label, _LABEL), *rest) for label, *rest in _rows(parts)]
    lines = [*wrap(headline(parts), WIDTH), *table_lines([_COLUMNS, *rows])]
    for note in _notes(parts):
        lines += wrap(note, WIDTH, "  Note: ", "    ")
    return "\n".join(lines) + "\n"


def parts_html(parts: Parts) -> str:
    """The parts as an HTML fragment without scripts."""
    rows = [f"<tr>{''.join(f'<th>{escape(text)}</th>' for text in _COLUMNS)}</tr>"]
    rows += [
        f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in _rows(parts)
    ]
    pieces = [f"<p><b>{escape(headline(parts))}</b></p>", f"<table>{''.join(rows)}</table>"]
    pieces += [f"<p><small>Note: {escape(note)}</small></p>" for note in _notes(parts)]
    return '<div style="max-width:880px">' + "\n".join(pieces) + "</div>"


def headline(parts: Parts) -> str:
    """The result of all toggles together in a few words."""
    if parts.together is not None:
        return f"All together: {comparison_headline(parts.together)}"
    if parts.cancelled:
        return "Cancelled before all toggles were tried together"
    return "The toggles were not tried together"


def _rows(parts: Parts) -> Iterator[tuple[str, ...]]:
    for row in parts.alone:
        yield _row(clean(row.arms[1].label, 80), row)
    if parts.together is not None:
        yield _row("all together", parts.together)
        yield "product of the parts", ratio(parts.product), "", ""


def _row(label: str, row: Comparison) -> tuple[str, ...]:
    ends = ratio_range(row.ratio_low, row.ratio_high)
    return label, ratio(row.ratio), ends, comparison_headline(row)


def _notes(parts: Parts) -> Iterator[str]:
    yield _CORRECTED
    for name, reason in parts.failed:
        yield clean(f"{name} was not tried: {reason}", 400)
    if parts.cancelled:
        yield "Cancelled: the numbers are those of the pairs that were finished."
