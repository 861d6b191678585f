"""What a frame is called in a file for another tool: own code by line, libraries by function.

A function of the user's that was seen at several lines is several places, with the line in the
name: calls into C leave no frame, and then the line is all that tells them apart. Lines inside a
library say little, and would break its functions into slivers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jupyter_ioscope.model.readings import Frame
from jupyter_ioscope.views.frames import CELL, USER, kind_of
from jupyter_ioscope.views.words import clean

_NAME_LIMIT = 300
_FILE_LIMIT = 1000


class Place(NamedTuple):
    """Inert plain text; `line` is 0 where unknown, of a library function the lowest one seen."""

    name: str
    file: str
    line: int


def places_of(frames: Sequence[Frame]) -> list[Place]:
    """The place of every frame."""
    lines: dict[tuple[str, str, int], set[int]] = {}
    for frame in frames:
        lines.setdefault((frame.name, frame.file, frame.cell), set()).add(max(0, frame.line))
    return [_place(frame, lines[frame.name, frame.file, frame.cell]) for frame in frames]


def _place(frame: Frame, lines: set[int]) -> Place:
    name = clean(frame.name, _NAME_LIMIT) or "(no name)"
    cell = f" In [{frame.cell}]" if frame.cell > 0 else ""
    file = clean(frame.file, _FILE_LIMIT)
    if kind_of(frame) not in (CELL, USER):
        return Place(name + cell, file, min(lines))
    line = f":{frame.line}" if len(lines) > 1 and frame.line > 0 else ""
    return Place(name + cell + line, file, max(0, frame.line))
