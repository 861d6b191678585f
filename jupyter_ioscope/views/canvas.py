"""A few drawing calls over Pillow, in CSS pixels, with the best font that this machine has.

Nothing of Pillow is imported before the first `Canvas` is made, and matplotlib never is: only its
folder of fonts is looked at.
"""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import Any

from jupyter_ioscope.units import NBSP
from jupyter_ioscope.views.colours import PAPER

SCALE = 1.25  # readable when enlarged, at half the bytes of 2
_NAMES = {False: "DejaVuSans.ttf", True: "DejaVuSans-Bold.ttf"}
_LEADING = 1.42
_SIMPLER = str.maketrans(
    {"–": "-", "×": "x", "…": "..", "µ": "u", "→": ">", "“": '"', "”": '"', "’": "'", "≥": ">="}
)


@lru_cache(maxsize=32)
def _font(size: float, bold: bool) -> Any:
    """DejaVu Sans (wide coverage of scripts) from the system or matplotlib, else Pillow's own."""
    from PIL import ImageFont

    pixels = round(size * SCALE)
    for place in _places(bold):
        try:
            return ImageFont.truetype(place, pixels)
        except OSError:
            continue
    return ImageFont.load_default(pixels)


def _places(bold: bool) -> list[str]:
    """Where the font may lie: on the system's paths (a bare name), or in matplotlib's folder."""
    spec = importlib.util.find_spec("matplotlib")
    folders = (spec.submodule_search_locations if spec else None) or ()
    return [_NAMES[bold], *(str(Path(f, "mpl-data/fonts/ttf", _NAMES[bold])) for f in folders)]


class Canvas:
    """A white picture of `width` x `height` CSS pixels; all positions and sizes are CSS pixels."""

    def __init__(self, width: int, height: int) -> None:
        from PIL import Image, ImageDraw

        self.width, self.height = width, height
        self.image = Image.new("RGB", _pixels(width, height), PAPER)
        self._draw = ImageDraw.Draw(self.image)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float,
        colour: str,
        *,
        bold: bool = False,
        anchor: str = "la",
    ) -> None:
        """One line; `anchor` as in Pillow: l, m or r for x, a for the top of the line."""
        place = _pixels(x, y)  # whole pixels: letters repeat exactly and pack better
        font = _font(size, bold)
        self._draw.text(place, _plain(text, font), fill=colour, font=font, anchor=anchor)

    def length(self, text: str, size: float, *, bold: bool = False) -> float:
        """How wide a line is."""
        font = _font(size, bold)
        return float(font.getlength(_plain(text, font))) / SCALE

    def fit(self, text: str, size: float, room: float) -> str:
        """`text`, cut with an ellipsis where it is wider than `room`."""
        if self.length(text, size) <= room:
            return text
        kept = len(text)
        while kept > 1 and self.length(text[:kept] + "…", size) > room:
            kept -= 1
        return text[:kept].rstrip() + "…"

    def paragraph(
        self,
        x: float,
        y: float,
        text: str,
        size: float,
        room: float,
        colour: str,
        *,
        bold: bool = False,
        lines: int = 3,
    ) -> int:
        """Text in at most `lines` lines of width `room`; returns the y below it."""
        for line in self._lines(text, size, room, bold, lines):
            self.text(x, y, line, size, colour, bold=bold)
            y += size * _LEADING
        return round(y)

    def _lines(self, text: str, size: float, room: float, bold: bool, most: int) -> list[str]:
        lines: list[str] = []
        line = ""
        words = text.split(" ")
        for index, word in enumerate(words):
            joined = f"{line} {word}" if line else word
            if line and self.length(joined, size, bold=bold) > room:
                if len(lines) == most - 1:
                    rest = " ".join([line, *words[index:]])
                    return [*lines, self.fit(rest, size * (1.06 if bold else 1), room)]
                lines.append(line)
                joined = word
            line = joined
        return [*lines, self.fit(line, size * (1.06 if bold else 1), room)]

    def box(self, x0: float, y0: float, x1: float, y1: float, colour: str) -> None:
        """A filled area; an area narrower than half a pixel is left out."""
        left, right = round(x0 * SCALE), round(x1 * SCALE) - 1
        if right >= left:
            top, bottom = round(y0 * SCALE), round(y1 * SCALE) - 1
            self._draw.rectangle((left, top, right, bottom), fill=colour)

    def dashes(self, x: float, y0: float, y1: float, colour: str) -> None:
        """A dashed upright line."""
        y = y0
        while y < y1:
            end = min(y + 4, y1)
            self._draw.line((x * SCALE, y * SCALE, x * SCALE, end * SCALE), fill=colour, width=2)
            y += 7

    def frame(self, colour: str) -> None:
        """A thin border around the picture."""
        right, bottom = _pixels(self.width, self.height)
        self._draw.rectangle((0, 0, right - 1, bottom - 1), outline=colour)


def _pixels(x: float, y: float) -> tuple[int, int]:
    return round(x * SCALE), round(y * SCALE)


def _plain(text: str, font: Any) -> str:
    """Signs that the font can draw; Pillow's own one knows few, and draws boxes for the others."""
    text = text.replace(NBSP, " ")
    return text if _is_dejavu(font) else text.translate(_SIMPLER)


def _is_dejavu(font: Any) -> bool:
    return str(font.getname()[0]).startswith("DejaVu")
