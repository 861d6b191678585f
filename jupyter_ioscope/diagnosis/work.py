"""Sorts what fetching threads were seen doing by kind of work.

Stack samples are taken at equal steps of time, so the part of them in one kind is the part of the
fetches' wall time. Time on and off the CPU is told apart elsewhere, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from jupyter_ioscope.diagnosis.hot import users
from jupyter_ioscope.diagnosis.work_kinds import (
    CALLS,
    INNER,
    LOCKING,
    LOCKS,
    OF_THREADS,
    RANDOM_FILES,
    REDUCING,
    RESIZING,
    WHOLE,
    FrameKind,
)
from jupyter_ioscope.model.observed import BlockedStacks, LineCalls
from jupyter_ioscope.model.readings import Frame, Stack, Stacks

# Functions of loaders below which items are got; a stack without one of them is not a fetch.
_FETCHING = ("/_utils/fetch.py", "/_utils/collate.py")
_DATASETS = "/datasets/"

# Stacks that a thread inside the process takes show other threads where they let go of the GIL:
# of two kinds of work, the one that holds it may be seen a few times less often than it is done.
# Such samples count for a quarter, which doubles the error (measured: 5 to 33 % instead of 57 to
# 75 % where the rest makes tensors, which lets go).
_INSIDE_CERTAINTY = 0.25

# Calls that take text into pieces, and how often and for which part of all samples a line has to be
# seen in one.
_SPLITTING = ("split", "rsplit", "splitlines")
_LEAST_SPLITS, _SPLIT_PART = 3, 0.02

Calls = Mapping[tuple[str, int], tuple[str, ...]]


class Seen(NamedTuple):
    """Samples of one stack inside a fetch. `place` is the innermost function of the user's (an
    empty name where there is none), `function` the library function that the kind was told by."""

    kind: str
    place: Frame
    function: str
    frames: tuple[Frame, ...]  # below the loader's own fetch, outermost first
    collate: bool
    times: int


@dataclass(frozen=True)
class Mix:
    """All samples inside fetches. `certainty` is that of the stacks they were taken from."""

    seen: tuple[Seen, ...]
    certainty: float = 1.0
    calls: Calls | None = None

    @cached_property
    def samples(self) -> int:
        return sum(row.times for row in self.seen)

    def fraction(self, *kinds: str) -> tuple[float, float]:
        """(part of all samples that are of these kinds, one standard error)."""
        return self.part(lambda row: row.kind in kinds)

    def under(self, path: str, names: Iterable[str] = ()) -> tuple[float, float]:
        """`fraction` of samples with a function of that file (a part of its path) in the stack."""
        wanted = frozenset(names)
        return self.part(
            lambda row: any(
                path in slashed(frame.file) and (not wanted or last_name(frame) in wanted)
                for frame in row.frames
            )
        )

    def part(self, of: Callable[[Seen], bool]) -> tuple[float, float]:
        """`fraction` for any choice of samples.

        The error is that of a share of independent draws, with two draws added on each side
        (Agresti and Coull, 1998), so that something seen always is not taken for certain.
        """
        total = self.samples
        if not total:
            return 0.0, 0.5
        fraction = sum(row.times for row in self.seen if of(row)) / total
        draws = total * self.certainty + 4
        smooth = (fraction * (draws - 4) + 2) / draws
        return fraction, math.sqrt(smooth * (1 - smooth) / draws)

    def where(self, *kinds: str) -> str:
        """The user's line that most samples of these kinds (none: all) were called from."""
        counts: dict[Frame, int] = {}
        for row in self.seen:
            if row.place.name and (not kinds or row.kind in kinds):
                counts[row.place] = counts.get(row.place, 0) + row.times
        if not counts:
            return ""
        best = max(sorted(counts), key=lambda frame: counts[frame])
        line = f", line {best.line}" if best.line else ""
        return f"{best.name} in {best.file}{line}"

    def functions(self, *kinds: str) -> tuple[str, ...]:
        """Up to three library functions that these kinds were told by, commonest first."""
        counts: dict[str, int] = {}
        for row in self.seen:
            if row.kind in kinds and row.function:
                counts[row.function] = counts.get(row.function, 0) + row.times
        return tuple(sorted(counts, key=lambda name: (-counts[name], name))[:3])

    @cached_property
    def _telling(self) -> frozenset[str]:
        """Telling calls anywhere in the user's files, see `LineCalls`."""
        rows = (self.calls or {}).items()
        return frozenset(name for (_, line), names in rows if line == 0 for name in names)

    @property
    def reduces(self) -> bool:
        """Whether pictures are asked for at reduced size somewhere."""
        return bool(self._telling & REDUCING)

    @property
    def resizes(self) -> bool:
        """Whether pictures are resized: seen, or called for somewhere in the user's files."""
        if any(row.kind == "image_resize" for row in self.seen):
            return True
        return any(_last(name) in RESIZING for name in self._telling)

    @property
    def guarded(self) -> bool:
        """Whether the user's files hold something that keeps processes apart: a lock between
        processes, or reads below a lock that was not made for threads only."""
        locks = [name for name in self._telling if _last(name) in LOCKS]
        if any(not name.startswith(OF_THREADS) for name in locks):
            return True
        return not locks and bool(self._telling & LOCKING)

    @property
    def locks(self) -> bool:
        """Whether the user's files have to do with locks of any kind."""
        return any(_last(name) in LOCKS or name in LOCKING for name in self._telling)

    @cached_property
    def random(self) -> bool:
        """Whether anything was seen that makes samples differ from time to time: frames of random
        augmentation, or calls of it in the files that fetches run through."""
        if any(_makes_chance(name) for name in self._telling):
            return True
        for row in self.seen:
            for frame in row.frames:
                path, name = slashed(frame.file), frame.name.lower()
                if any(part in path for part in RANDOM_FILES):
                    return True
                if "/transforms/" in path and ("random" in name or "get_params" in name):
                    return True
        return False


def told_by_code(calls: Iterable[LineCalls]) -> Mix:
    """A mix without samples, for what the code tells whatever was seen."""
    return Mix((), calls={(row.file, row.line): row.names for row in calls})


def _makes_chance(telling: str) -> bool:
    """Of telling calls, all that have no other reason to be there."""
    if telling in REDUCING or telling in LOCKING:
        return False
    last = _last(telling)
    return last not in LOCKS and (last not in RESIZING or last.startswith("Random"))


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def blocked_mix_of(
    blocked: BlockedStacks, role: str, calls: Iterable[LineCalls], library: str = "torch"
) -> Mix:
    """`mix_of` at those instants at which the threads were blocked."""
    stacks = tuple(
        Stack(row.role, row.worker, row.pid, "", row.frames, len(row.seen_ns))
        for row in blocked.stacks
    )
    return mix_of(
        Stacks("blocked", blocked.rate_hz, True, blocked.frames, stacks), role, calls, library
    )


def mix_of(stacks: Stacks, role: str, calls: Iterable[LineCalls], library: str = "torch") -> Mix:
    """What threads of `role` ("worker", or "consumer" where it fetches) did inside fetches of a
    loader of `library`."""
    known: Calls = {(row.file, row.line): row.names for row in calls}
    rows: list[tuple[int, tuple[Frame, ...], Frame]] = []
    for stack in stacks.stacks:
        if stack.role != role or not stack.count:
            continue
        frames = [stacks.frames[i] for i in stack.frames if 0 <= i < len(stacks.frames)]
        if frames and frames[-1].name.startswith("["):  # a kernel call, not a function
            frames.pop()
        start = _fetch_start(frames, library)
        if start > 0:
            rows.append((stack.count, tuple(frames[start:]), frames[start - 1]))
    collate_lines = _collate_lines(fetch for _, _, fetch in rows)
    seen = []
    for count, below, fetch in rows:
        kind, function = kind_of(below or (fetch,), known)
        place = next((frame for frame in reversed(below) if users(frame)), Frame("", "", 0))
        joins = _is_collate(below) or collate_lines.get(fetch.name) == fetch.line
        seen.append(Seen(kind, place, function, below, joins, count))
    seen = _with_own_tokenising(seen)
    inside = _INSIDE_CERTAINTY if stacks.source == "in-process" else 1.0
    return Mix(tuple(seen), stacks.certainty * inside, known)


def _with_own_tokenising(seen: Sequence[Seen]) -> list[Seen]:
    """The user's own functions that get the pieces from a line that splits text belong to it: words
    looked up one by one. Only below lines that were seen splitting for a good part themselves."""
    at: dict[tuple[str, int], int] = {}
    for row in seen:
        if row.frames and users(row.frames[-1]) and _splits(row):
            key = (row.frames[-1].file, row.frames[-1].line)
            at[key] = at.get(key, 0) + row.times
    least = max(_LEAST_SPLITS, _SPLIT_PART * sum(row.times for row in seen))
    lines = {key for key, times in at.items() if times >= least}
    return [
        row._replace(kind="tokenise", function=row.place.name)
        if row.kind == "user" and any((f.file, f.line) in lines for f in row.frames[:-1])
        else row
        for row in seen
    ]


def _splits(row: Seen) -> bool:
    return row.kind in ("regex", "tokenise") or row.function in _SPLITTING


def kind_of(frames: Sequence[Frame], calls: Calls) -> tuple[str, str]:
    """(kind of work, library function that told it) of a stack below the loader's fetch."""
    for frame in frames:
        found = None if users(frame) else _match(frame, WHOLE)
        if found:
            return found, _title(frame)
    for position in range(len(frames) - 1, -1, -1):
        frame = frames[position]
        if users(frame):
            if position < len(frames) - 1:  # below it is a library that no table knows
                return "library", _title(frames[-1])
            return _by_calls(calls.get((frame.file, frame.line), ()))
        found = _match(frame, INNER)
        if found:
            return found, _title(frame)
    return ("library", _title(frames[-1])) if frames else ("user", "")


def _match(frame: Frame, table: Sequence[FrameKind]) -> str:
    path, name = slashed(frame.file), last_name(frame)
    for row in table:
        if row.path in path and (not row.names or name in row.names):
            return row.kind
    return ""


def _by_calls(names: Sequence[str]) -> tuple[str, str]:
    for kind, known in CALLS:
        for name in names:
            if name in known:
                return kind, name.lstrip(".")
    for name in names:
        if name.startswith(("tokenizers.", "sentencepiece.", "tiktoken.")):
            return "tokenise", name
    return "user", ""


def slashed(path: str) -> str:
    """A path as the tables write it: with `/`, and one in front of a bare name."""
    return "/" + path.replace("\\", "/").lstrip("/")


def last_name(frame: Frame) -> str:
    """`read` of `ZipExtFile.read`: before Python 3.11 code knows its bare name only."""
    return frame.name.rpartition(".")[2]


def _title(frame: Frame) -> str:
    stem = slashed(frame.file).rpartition("/")[2].removesuffix(".py")
    return f"{frame.name} ({stem})" if stem and stem != "__init__" else frame.name


def _fetch_start(frames: Sequence[Frame], library: str) -> int:
    """Index of the first frame below the loader's fetch, -1 for a stack outside a fetch."""
    for index in range(len(frames) - 1, -1, -1):
        if slashed(frames[index].file).endswith(_FETCHING):
            return _first_below(frames, index)
    if library == "datasets":
        for index, frame in enumerate(frames):
            if _DATASETS in slashed(frame.file) and not users(frame):
                return index + 1
    return -1


def _first_below(frames: Sequence[Frame], index: int) -> int:
    """Frames of fetching and joining lie on top of each other: below the outermost run of them."""
    while index > 0 and slashed(frames[index - 1].file).endswith(_FETCHING):
        index -= 1
    own = index
    while own + 1 < len(frames) and "/_utils/fetch.py" in slashed(frames[own + 1].file):
        own += 1  # the list comprehension inside it has a frame of its own up to Python 3.11
    return own + 1


def _is_collate(below: Sequence[Frame]) -> bool:
    return bool(below) and slashed(below[0].file).endswith("/_utils/collate.py")


def _collate_lines(fetches: Iterable[Frame]) -> dict[str, int]:
    """Function of a fetcher -> the line in which it joins items: its last one. A function that was
    seen in one line only says nothing."""
    lines: dict[str, set[int]] = {}
    for frame in fetches:
        lines.setdefault(frame.name, set()).add(frame.line)
    return {
        name: max(seen) for name, seen in lines.items() if len(seen) > 1 and name.endswith("fetch")
    }
