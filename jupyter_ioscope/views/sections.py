"""A result as a headline and sections: tables, sentences, code; as text and as script-free HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import NamedTuple

from jupyter_ioscope.units import NBSP, bytes_text
from jupyter_ioscope.views.text import WIDTH
from jupyter_ioscope.views.words import clean, clean_lines, columns_of, fit, wrap

_LONGEST = 600
_WIDEST = 44  # columns of a cell that is not the last


class Section(NamedTuple):
    """A title over a table (its first row is the head), sentences, and code to copy."""

    title: str
    table: tuple[tuple[str, ...], ...] = ()
    sentences: tuple[str, ...] = ()
    code: str = ""

    @property
    def empty(self) -> bool:
        return len(self.table) <= 1 and not self.sentences and not self.code


def text_of(headline: str, sections: Iterable[Section]) -> str:
    """Lines of at most 100 columns."""
    blocks = ["\n".join(wrap(clean(headline), WIDTH))]
    blocks += ["\n".join(_lines(section)) for section in sections if not section.empty]
    return "\n\n".join(blocks) + "\n"


def _lines(section: Section) -> Iterator[str]:
    yield clean(section.title)
    if len(section.table) > 1:
        yield from table([tuple(clean(cell) for cell in row) for row in section.table])
    for sentence in section.sentences:
        yield from wrap(clean(sentence, _LONGEST), WIDTH, "  - ", "    ")
    if section.code:
        yield from (f"    {line}" for line in clean_lines(section.code).split("\n"))


def table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Rows under their head: numbers to the right, words to the left; a long last column wraps."""
    columns = list(zip(*rows, strict=True))
    numbers = [
        n > 0 and all(_number(cell) for cell in cells[1:]) for n, cells in enumerate(columns)
    ]
    widths = [min(_WIDEST, max(columns_of(cell) for cell in cells)) for cells in columns]
    for row in rows:
        start = "  "
        for cell, width, right in list(zip(row, widths, numbers, strict=True))[:-1]:
            text = fit(cell, width)
            space = " " * (width - columns_of(text))
            start += (space + text if right else text + space) + "   "
        last = row[-1].rjust(widths[-1]) if numbers[-1] else row[-1]
        yield from wrap(last, WIDTH, start, " " * columns_of(start)) or [start.rstrip()]


def block_text(size: int) -> str:
    """The size of a request: whole KiB or MiB where it is one, as blocks are named."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{NBSP}{name}"
    return bytes_text(size)


def _number(text: str) -> bool:
    return text[:1].isdigit() or text[:1] in "–+-"


def html_of(headline: str, sections: Iterable[Section]) -> str:
    """A fragment without scripts; all text is escaped."""
    pieces = [f"<p><b>{_text(headline)}</b></p>"]
    for section in sections:
        if not section.empty:
            pieces += _pieces(section)
    return '<div style="max-width:880px">' + "\n".join(pieces) + "</div>"


def _pieces(section: Section) -> Iterator[str]:
    yield f'<p style="margin:12px 0 2px 0"><b>{_text(section.title)}</b></p>'
    if len(section.table) > 1:
        head, *rows = section.table
        cells = "".join(f"<th>{_text(cell)}</th>" for cell in head)
        lines = [f"<tr>{cells}</tr>"]
        lines += ["<tr>" + "".join(f"<td>{_text(c)}</td>" for c in row) + "</tr>" for row in rows]
        yield f"<table>{''.join(lines)}</table>"
    if section.sentences:
        items = "".join(f"<li>{_text(sentence)}</li>" for sentence in section.sentences)
        yield f"<ul>{items}</ul>"
    if section.code:
        yield f"<pre>{escape(clean_lines(section.code))}</pre>"


def _text(text: str) -> str:
    return escape(clean(text, _LONGEST), quote=True)
