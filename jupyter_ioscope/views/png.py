"""A summary picture of the report, for places that show nothing else (PDF, mail, some previews).

Drawn with Pillow, which is optional: without it there is no picture and the report says so. The
page is light and brings its own margins, so that it reads on dark pages too.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterator
from typing import Any

from jupyter_ioscope.optional import installed
from jupyter_ioscope.views.canvas import Canvas
from jupyter_ioscope.views.colours import (
    BAR,
    BLACK,
    INK,
    INK_SOFT,
    LIMITING,
    LINE,
    PAPER,
    PART_COLOURS,
    ink_on,
    part_colour,
)
from jupyter_ioscope.views.shapes import IBar, ICeiling, IReport

log = logging.getLogger("ioscope")

WIDTH = 900  # CSS pixels: what a notebook should show it at
MISSING = "Pillow 10.1 or newer is needed: pip install -U pillow"
_MARGIN = 24
_LABELS = 110  # room for names left of bars
_BARS, _CEILINGS, _FINDINGS = 12, 8, 4


def png_of(report: IReport) -> bytes | None:
    """The picture as PNG, or None where Pillow is missing or cannot draw here."""
    if not installed("PIL"):
        return None
    try:
        return _packed(_drawn(report))
    except Exception:
        log.warning("the summary picture could not be drawn", exc_info=True)
        return None


def _drawn(report: IReport) -> Any:
    height = _draw(report, Canvas(WIDTH, 10))  # first only to learn how high it gets
    canvas = Canvas(WIDTH, height)
    _draw(report, canvas)
    return canvas.image


def _packed(image: Any) -> bytes:
    out = io.BytesIO()
    image.quantize(palette=_palette(), dither=0).save(out, "PNG", optimize=True)
    return out.getvalue()


def _palette() -> Any:
    """The exact colours of the drawing and a few steps between letters and what they stand on.

    A palette chosen by counting pixels shifts the colours of small areas, and more colours only
    make the file larger.
    """
    from PIL import Image

    flat = [*PART_COLOURS.values(), PAPER, INK, BLACK, INK_SOFT, LINE, BAR, LIMITING]
    edges = [(INK, PAPER, 6), (INK_SOFT, PAPER, 4), (PAPER, PART_COLOURS["cpu"], 3)]
    colours = [_rgb(colour) for colour in flat]
    for one, other, steps in edges:
        for step in range(1, steps):
            pairs = zip(_rgb(one), _rgb(other), strict=True)
            colours.append(tuple(round(a + (b - a) * step / steps) for a, b in pairs))
    image = Image.new("P", (1, 1))
    image.putpalette([channel for colour in colours for channel in colour])
    return image


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


def _draw(report: IReport, canvas: Canvas) -> int:
    """Draws everything and returns the height that it took."""
    blocks: list[Callable[[IReport, Canvas, int], int]] = [
        _head, _figures, _bars, _legend, _ceilings, _findings, _foot
    ]  # fmt: skip
    y = _MARGIN
    for block in blocks:
        y = block(report, canvas, y)
    canvas.frame(LINE)
    return y + _MARGIN - 8


def _head(report: IReport, canvas: Canvas, y: int) -> int:
    room = WIDTH - 2 * _MARGIN
    headline = report["headline"] or "No verdict."
    y = canvas.paragraph(_MARGIN, y, headline, 21, room, INK, bold=True, lines=2)
    for text in (report["ended"], report["detail"]):
        if text:
            y = canvas.paragraph(_MARGIN, y + 2, text, 13.5, room, INK_SOFT, lines=3)
    return y + 12


def _figures(report: IReport, canvas: Canvas, y: int) -> int:
    x = _MARGIN
    for figure in report["figures"]:
        width = max(
            canvas.length(figure["value"], 18, bold=True), canvas.length(figure["label"], 11.5)
        )
        if x + width > WIDTH - _MARGIN:
            break
        canvas.text(x, y, figure["value"], 18, INK, bold=True)
        canvas.text(x, y + 25, figure["label"], 11.5, INK_SOFT)
        x += round(width) + 26
    return y + 56 if report["figures"] else y


def _bars(report: IReport, canvas: Canvas, y: int) -> int:
    if not report["bars"]:
        return y
    y = _heading(canvas, y, "Where the time went")
    for bar in report["bars"][:_BARS]:
        _bar(bar, canvas, y)
        y += 28
    return y + 4


def _bar(bar: IBar, canvas: Canvas, y: int) -> None:
    left, whole = _MARGIN + _LABELS, WIDTH - 2 * _MARGIN - _LABELS
    _row_name(canvas, y + 3, bar["who"])
    x = 0.0
    for part in bar["parts"]:
        width, colour = part["fraction"] * whole, part_colour(part["name"])
        canvas.box(left + x, y, left + x + width, y + 22, colour)
        for text in (f"{part['label']} {part['text']}", part["text"]):
            if canvas.length(text, 11.5) + 6 < width:
                middle = left + x + width / 2
                canvas.text(middle, y + 3.5, text, 11.5, ink_on(colour), anchor="ma")
                break
        x += width


def _row_name(canvas: Canvas, y: float, name: str) -> None:
    """A name in the column left of the bars."""
    right = _MARGIN + _LABELS - 10
    canvas.text(right, y, canvas.fit(name, 12.5, _LABELS - 12), 12.5, INK, anchor="ra")


def _legend(report: IReport, canvas: Canvas, y: int) -> int:
    if not report["legend"]:
        return y
    x = left = _MARGIN + _LABELS
    for entry in report["legend"]:
        width = canvas.length(entry["label"], 11.5) + 32
        if x + width > WIDTH - _MARGIN and x > left:
            x, y = left, y + 18
        canvas.box(x, y + 2, x + 11, y + 13, part_colour(entry["name"]))
        canvas.text(x + 16, y, entry["label"], 11.5, INK_SOFT)
        x += round(width)
    return y + 28


def _ceilings(report: IReport, canvas: Canvas, y: int) -> int:
    rows = report["ceilings"][:_CEILINGS]
    if not rows:
        return y
    y = _heading(canvas, y, "Ceilings: samples/s that each resource alone would allow")
    left, whole = _MARGIN + _LABELS, (WIDTH - 2 * _MARGIN - _LABELS) * 0.62
    top = y
    for row in rows:
        _ceiling(row, canvas, y, left, whole)
        y += 26
    if now := report["ceilingNow"]:
        x = left + now["fraction"] * whole
        canvas.dashes(x, top - 2, y + 2, INK)
        canvas.text(x + 6, y - 2, now["text"], 11.5, INK, bold=True)
        y += 16
    return y + 10


def _ceiling(row: ICeiling, canvas: Canvas, y: int, left: int, whole: float) -> None:
    _row_name(canvas, y + 2, row["label"])
    end = left + max(2.0, row["fraction"] * whole)
    canvas.box(left, y, end, y + 19, LIMITING if row["limiting"] else BAR)
    room = WIDTH - _MARGIN - end - 8
    canvas.text(end + 8, y + 2, canvas.fit(row["text"], 12, room), 12, INK)


def _findings(report: IReport, canvas: Canvas, y: int) -> int:
    lines = list(_finding_lines(report))
    if not lines:
        return y
    y = _heading(canvas, y, "Findings: share of the time that removing the cause would free")
    for share, title in lines:
        canvas.text(_MARGIN, y, share, 12.5, INK, bold=True)
        x = _MARGIN + 150
        y = canvas.paragraph(x, y, title, 12.5, WIDTH - _MARGIN - x, INK, lines=2) + 3
    return y + 8


def _finding_lines(report: IReport) -> Iterator[tuple[str, str]]:
    for finding in report["findings"][:_FINDINGS]:
        where = f" ({finding['where']})" if finding["where"] else ""
        yield finding["share"], f"{finding['title']}{where}. {finding['advice']}"
    for comparison in report["comparisons"][-2:]:
        yield comparison["headline"], " · ".join((comparison["title"], *comparison["lines"][:1]))


def _foot(report: IReport, canvas: Canvas, y: int) -> int:
    room = WIDTH - 2 * _MARGIN
    return canvas.paragraph(_MARGIN, y, report["cost"], 11, room, INK_SOFT, lines=2)


def _heading(canvas: Canvas, y: int, text: str) -> int:
    canvas.text(_MARGIN, y, text, 12.5, INK_SOFT, bold=True)
    return y + 24
