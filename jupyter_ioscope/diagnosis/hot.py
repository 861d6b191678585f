"""Names the user's function that most of the fetching time was sampled in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from jupyter_ioscope.model.readings import Frame, Stack, Stacks

# Folders of installed code and of the standard library: not what the user wrote.
_LIBRARY = ("/site-packages/", "/dist-packages/", "/lib/python", "\\lib\\", "/ioscope.py")
# Functions of loaders below which items are got; a stack without one of them is not a fetch.
_FETCHING = ("/_utils/fetch.py", "/_utils/collate.py")


class Hot(NamedTuple):
    """`fraction` of the samples inside fetches, with one standard error. `below` is the library
    function most often found under it, empty when it did the work itself. `line` is where it was
    seen most, `line_fraction` the part of its samples there."""

    name: str
    file: str
    line: int
    fraction: float
    error: float
    below: str
    line_fraction: float

    @property
    def where(self) -> str:
        place = f"{self.file}, line {self.line}" if self.line else self.file
        return f"{self.name} in {place}"


def users(frame: Frame) -> bool:
    """Whether the user wrote this function, as far as its file tells."""
    if frame.cell:
        return True
    path = frame.file.replace("\\", "/")
    return bool(path) and not path.startswith("<") and not any(part in path for part in _LIBRARY)


def hottest(stacks: Stacks, role: str) -> Hot | None:
    """The innermost user function with most samples inside fetches of threads of `role`."""
    counts: dict[tuple[str, str], int] = {}
    lines: dict[tuple[str, str], dict[int, int]] = {}
    under: dict[tuple[str, str], dict[str, int]] = {}
    total = 0
    for stack in stacks.stacks:
        if stack.role != role:
            continue
        frames = [stacks.frames[i] for i in stack.frames if 0 <= i < len(stacks.frames)]
        start = _fetch_start(frames)
        if start < 0:
            continue
        total += stack.count
        own = [i for i in range(start, len(frames)) if users(frames[i])]
        if not own:
            continue
        frame = frames[own[-1]]
        key = (frame.name, frame.file)
        counts[key] = counts.get(key, 0) + stack.count
        seen = lines.setdefault(key, {})
        seen[frame.line] = seen.get(frame.line, 0) + stack.count
        _note_below(under.setdefault(key, {}), frames[own[-1] + 1 :], stack)
    if not counts:
        return None
    best = max(sorted(counts), key=lambda key: counts[key])
    fraction = counts[best] / total
    line = max(lines[best], key=lambda line: lines[best][line])
    return Hot(
        best[0],
        best[1],
        line,
        fraction,
        math.sqrt(fraction * (1 - fraction) / (total * stacks.certainty)),
        _commonest(under[best], counts[best]),
        lines[best][line] / counts[best],
    )


def _fetch_start(frames: Sequence[Frame]) -> int:
    """Index of the first frame below the loader's fetch, -1 for a stack outside a fetch."""
    for index in range(len(frames) - 1, -1, -1):
        path = frames[index].file.replace("\\", "/")
        if any(path.endswith(end) for end in _FETCHING):
            return index + 1
    return -1


def _note_below(under: dict[str, int], below: Sequence[Frame], stack: Stack) -> None:
    name = below[-1].name if below else ""
    under[name] = under.get(name, 0) + stack.count


def _commonest(under: dict[str, int], count: int) -> str:
    name = max(sorted(under), key=lambda item: under[item])
    return name if under[name] > count / 2 else ""
