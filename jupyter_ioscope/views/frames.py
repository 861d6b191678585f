"""What a frame of a stack is called on screen, where it is from, and whose code it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from jupyter_ioscope.model.readings import Frame
from jupyter_ioscope.views.words import clean, shorten

# IFlame.kinds. ROOT is also a state in which a thread waits, STATE one in which it does not.
LIBRARY, USER, CELL, ROOT, STATE = 0, 1, 2, 3, 4

_NAME_LIMIT = 80
_DETAIL_LIMIT = 110
_LINES_NAMED = 3
# Where installed packages and the standard library live, on Linux, macOS, Windows and in conda.
# Told from the path alone: a loaded profile may come from another machine.
_INSTALLED = re.compile(r"/(?:site|dist)-packages/")
_STANDARD = re.compile(r"/lib(?:64)?/python3(?:\.\d+)?/|/python3\d*/lib/|\.zip/", re.IGNORECASE)


class FrameText(NamedTuple):
    """Name and detail as plain text; `kind` as in `IFlame.kinds`."""

    name: str
    detail: str
    kind: int


def kind_of(frame: Frame) -> int:
    """Whose code a frame is: a notebook cell's, the user's own file's, or a library's."""
    file = frame.file.replace("\\", "/")
    if frame.cell > 0 or file.startswith("In ["):
        return CELL
    native = not file.endswith((".py", ".pyw", ".ipynb"))  # built in, frozen, or C and Rust
    return LIBRARY if native or _INSTALLED.search(file) or _STANDARD.search(file) else USER


def short_file(file: str, limit: int = 80) -> str:
    """A path as a person would name it: from the package on, or its last parts."""
    path = file.replace("\\", "/")
    parts = _INSTALLED.split(path)
    if len(parts) == 1:
        parts = _STANDARD.split(path)
    text = clean(parts[-1][-4 * limit :], 4 * limit)
    return text if len(text) <= limit else "…" + text[1 - limit :]


def frame_texts(frames: Sequence[Frame]) -> tuple[list[int], list[FrameText]]:
    """For every frame the number of its function, and every function's text.

    Frames of one function that stopped at different lines are one function here.
    """
    numbers: dict[tuple[str, str, int], int] = {}
    functions: list[int] = []
    lines: list[set[int]] = []
    first: list[Frame] = []
    for frame in frames:
        number = numbers.setdefault((frame.name, frame.file, frame.cell), len(numbers))
        if number == len(first):
            first.append(frame)
            lines.append(set())
        lines[number].add(frame.line)
        functions.append(number)
    return functions, [_text(frame, lines[i]) for i, frame in enumerate(first)]


def _text(frame: Frame, lines: set[int]) -> FrameText:
    kind = kind_of(frame)
    name = clean(frame.name, _NAME_LIMIT) or "(no name)"
    cell = f"In [{frame.cell}]" if frame.cell > 0 else ""
    if kind == CELL:
        name = shorten(f"{name}  {cell or clean(frame.file, 20)}", _NAME_LIMIT)
    where = cell or short_file(frame.file) or "built in"
    return FrameText(name, shorten(where + _lines(lines), _DETAIL_LIMIT), kind)


def _lines(lines: set[int]) -> str:
    known = sorted(line for line in lines if line > 0)
    if not known:
        return ""
    if len(known) <= _LINES_NAMED:
        return f", line{'s' * (len(known) > 1)} {', '.join(map(str, known))}"
    return f", lines {known[0]} – {known[-1]}"


def root_text(label: str, samples: int, missing: int, note: str = "") -> FrameText:
    """The frame that everything stands on. `missing` samples end in frames too narrow to draw.
    A `note` says what is counted where it is no samples."""
    if note:
        return FrameText(label, note, ROOT)
    detail = f"{samples:,} samples"
    if missing:
        detail += (
            f"; {missing:,} of them go on into frames too narrow to draw here, counted in the"
            " frames that called them. The saved profile holds all."
        )
    return FrameText(label, detail, ROOT)
