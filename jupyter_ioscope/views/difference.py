"""A against B: where two profiles spend their time differently, as flame graphs and in words.

Frames are as wide as the mean of their shares in A and in B, so that what only one of them has is
seen too; `delta` is the share in B less the share in A. A function is the same when its name and
whose code it is are: its lines may have moved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any, NamedTuple

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.units import NBSP
from jupyter_ioscope.views.flame import Node, Tree
from jupyter_ioscope.views.flame_states import all_trees
from jupyter_ioscope.views.frames import CELL, ROOT, USER, FrameText
from jupyter_ioscope.views.shapes import FORMAT, MIME, Bundle, IFlame, IOutliers, IReport, ITimeline
from jupyter_ioscope.views.words import clean

_LEAST = 0.01  # a smaller change of a share is not told
_TOLD = 3
_ALIKE = 0.15
_DIGITS = 5


@dataclass
class Both:
    """One frame in A and B: shares of all time of the threads (0-1)."""

    text: FrameText
    a: float = 0.0
    b: float = 0.0
    below: dict[tuple[str, int], Both] = field(default_factory=dict)

    @property
    def width(self) -> float:
        return (self.a + self.b) / 2


class Group(NamedTuple):
    """Threads that both profiles have: workers merged, one worker, the consumer, ..."""

    key: str
    label: str
    root: Both


def differences(a: Profile, b: Profile) -> list[Group]:
    """Both profiles as one tree for each group of threads that both have, workers merged first.

    Raises:
        InputError: they have no group in common, or one of them has no stacks.
    """
    others = {tree.key: tree for tree in all_trees(b)}
    pairs = [(tree, others[tree.key]) for tree in all_trees(a) if tree.key in others]
    if not pairs:
        raise InputError(
            "these profiles cannot be compared as flame graphs: one has no stacks, or they have no "
            "threads of one kind in common"
        )
    return [Group(one.key, one.label, both_of(one, other)) for one, other in pairs]


def both_of(a: Tree, b: Tree) -> Both:
    """Two trees as one."""
    root = Both(FrameText(a.label, f"A: {_root(a)}; B: {_root(b)}", ROOT), 1.0, 1.0)
    for tree, side in ((a, "a"), (b, "b")):
        pending = [(tree.root, root)]
        whole = tree.root.count or 1
        while pending:
            node, into = pending.pop()
            for child in node.children:
                below = _place(tree, child, into)
                setattr(below, side, getattr(below, side) + child.count / whole)
                pending.append((child, below))
    return root


def _root(tree: Tree) -> str:
    return tree.note or f"{tree.root.count:,} samples"


def _place(tree: Tree, child: Node, into: Both) -> Both:
    text = tree.texts[child.function]
    return into.below.setdefault((text.name, text.kind), Both(text))


def flame_of(group: Group, frames: int) -> IFlame:
    """The widest `frames` frames as columns."""
    root = group.root
    flame = IFlame(
        key=group.key, label=group.label, samples=0, names=[], details=[], kinds=[],
        name=[], depth=[], x0=[], x1=[], delta=[],
    )  # fmt: skip
    least = _narrowest(root, frames)
    numbers: dict[FrameText, int] = {}
    level, depth = [(root, 0.0)], 0
    while level:
        below: list[tuple[Both, float]] = []
        for node, start in level:
            if node.text not in numbers:
                numbers[node.text] = len(numbers)
                flame["names"].append(node.text.name)
                flame["details"].append(node.text.detail)
                flame["kinds"].append(node.text.kind)
            flame["name"].append(numbers[node.text])
            flame["depth"].append(depth)
            flame["x0"].append(round(min(1.0, start), _DIGITS))
            flame["x1"].append(round(min(1.0, start + node.width), _DIGITS))
            flame["delta"].append(round(node.b - node.a, _DIGITS))
            for child in sorted(node.below.values(), key=lambda one: -one.width):
                if child.width >= least:
                    below.append((child, start))
                start += child.width
        level, depth = below, depth + 1
    return flame


def _narrowest(root: Both, frames: int) -> float:
    """The width of the last frame that is drawn."""
    widths = sorted((node.width for node in _all(root)), reverse=True)
    return widths[frames - 1] if len(widths) >= frames else 0.0


def _all(root: Both) -> Iterator[Both]:
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(node.below.values())


def changes(root: Both) -> list[tuple[str, float]]:
    """Functions by how much their share changed, with all that they call; of equal changes the
    user's own code and inner functions first. A function that calls itself counts once."""
    found: dict[tuple[str, int], tuple[float, int]] = {}
    pending: list[tuple[Both, int, frozenset[tuple[str, int]]]] = [(root, 0, frozenset())]
    while pending:
        node, depth, callers = pending.pop()
        key = (node.text.name, node.text.kind)
        if key not in callers and depth:
            change, deepest = found.get(key, (0.0, 0))
            found[key] = change + node.b - node.a, max(deepest, depth)
        pending += [(child, depth + 1, callers | {key}) for child in node.below.values()]
    told = [(*key, *value) for key, value in found.items() if abs(value[0]) >= _LEAST]
    told.sort(key=lambda row: (-round(abs(row[2]), 2), row[1] not in (USER, CELL), -row[3], row[2]))
    return [(name, change) for name, _, change, _ in told]


def headline_of(group: Group) -> str:
    """What changed most, in one sentence."""
    told: list[tuple[str, float]] = []
    for name, change in changes(group.root):
        # callers change as what they call does: one of them is enough
        if not any(abs(change - other) < _ALIKE * abs(other) for _, other in told):
            told.append((name, change))
    words = [f"{_points(change)} in {name}" for name, change in told[:_TOLD]]
    said = ", ".join(words) if words else "no difference to see"
    return f"{group.label}, B against A: {said}"


def _points(change: float) -> str:
    sign = "−" if change < 0 else "+"
    return f"{sign}{100 * abs(change):.0f}{NBSP}points"


class Difference:
    """Two profiles against each other; draws itself in a notebook.

    Raises:
        InputError: as `differences`.
    """

    def __init__(self, a: Profile, b: Profile) -> None:
        self._groups = differences(a, b)
        names = [clean(one.label, 60) or side for one, side in ((a, "A"), (b, "B"))]
        self._label = f"A: {names[0]} · B: {names[1]}"
        self._version = clean(b.machine.ioscope, 40)
        self.headline = headline_of(self._groups[0])

    @property
    def changes(self) -> dict[str, list[tuple[str, float]]]:
        """Group of threads -> (function, share in B less share in A), most changed first."""
        return {group.label: changes(group.root) for group in self._groups}

    def report(self, frames: int = 900) -> IReport:
        """A report that every host draws, with at most `frames` frames in all graphs together."""
        each = max(1, frames // (len(self._groups) + 2))
        sizes = [3 * each, *[each] * (len(self._groups) - 1)]
        flames = [flame_of(group, n) for group, n in zip(self._groups, sizes, strict=True)]
        return {**_BLANK, "version": self._version, "label": self._label,
                "headline": self.headline, "detail": _DETAIL, "flames": flames}  # fmt: skip

    def __str__(self) -> str:
        lines = [self.headline, self._label]
        for label, found in self.changes.items():
            told = (f"  {_points(change):>11}  {name}" for name, change in found[:12])
            lines += ["", label, *told] if found else []
        return "\n".join(lines) + "\n"

    def __repr__(self) -> str:
        return f"<ioscope difference: {self.headline}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Bundle:
        from jupyter_ioscope.views.bundle import LIMIT_BYTES, saved_bytes
        from jupyter_ioscope.views.html import html_of
        from jupyter_ioscope.views.packed import packed

        text = str(self)
        for frames in _SIZES:
            report = self.report(frames)
            html = f"{html_of(report)}<pre>{escape(text)}</pre>"
            made: Bundle = {MIME: packed(report), "text/html": html, "text/plain": text}
            if saved_bytes(made) <= LIMIT_BYTES:
                break
        return made


_SIZES = (900, 500, 200, 1)
_DETAIL = (
    "Orange: B spends a larger share of its time there; blue: a smaller one. Points are hundredths "
    "of all time of these threads."
)
_BLANK = IReport(
    format=FORMAT, version="", label="", headline="", detail="", separated=True, wouldSeparate="",
    variable="", figures=[], bars=[], legend=[], ceilings=[], ceilingNow=None, findings=[],
    toggles=[], timeline=ITimeline(tracks=[], start="", end=""), flames=[], flameSource="",
    comparisons=[], cost="", notMeasured=[], ended="", tier="", cores="", phases=[],
    outliers=IOutliers(summary="", rows=[], stalls=[]),
)  # fmt: skip
