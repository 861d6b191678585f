"""The profiled cells of a kernel as text and as a table: did the last change help?"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from jupyter_ioscope.model.history import History
from jupyter_ioscope.units import percent, seconds, significant
from jupyter_ioscope.views.text import WIDTH, table_lines
from jupyter_ioscope.views.words import clean, fit, wrap

_HEAD = ("cell", "batches", "time", "samples/s", "waiting")
_NONE = "No cell was profiled in this kernel yet: put %%ioscope on the cell with the loop."
_HOW = (
    "Cells under %%ioscope, the newest last. Two runs differ by chance, too: whether a change "
    "helped is told by an A/B, %ioscope compare."
)


def history_text(history: History) -> str:
    """Lines of at most 100 columns."""
    if not history.ran:
        return _NONE
    lines = table_lines([(*_HEAD, ""), *_rows(history, 40)])
    return "\n".join([*lines, *wrap(_HOW, WIDTH)])


def history_html(history: History) -> str:
    """An HTML fragment without scripts."""
    if not history.ran:
        return f"<p>{escape(_NONE)}</p>"
    head = "".join(f"<th>{name}</th>" for name in (*_HEAD, "what held it back"))
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>"
        for row in _rows(history, 120)
    )
    return f"<table><tr>{head}</tr>{rows}</table><p><small>{escape(_HOW)}</small></p>"


def _rows(history: History, width: int) -> Iterator[tuple[str, ...]]:
    for one in history.ran:
        name = f"In [{one.cell}]" if one.cell else "a cell"
        known = one.samples >= 0 and one.seconds > 0
        label = clean(one.label, 30)
        yield (
            f"{name} {label}".rstrip(),
            f"{one.batches:,}",
            seconds(one.seconds),
            significant(one.samples / one.seconds) if known else "–",
            percent(one.wait_fraction, 0),
            fit(clean(one.cause, 120), width),
        )
