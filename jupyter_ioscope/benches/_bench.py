"""What a bench is made of. A bench is one file with one constant, found by its folder."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model.bench import BenchTable
from jupyter_ioscope.registry import plugins

# One pass over the arm's items. It may return numbers of its own: "seconds" replaces the time
# that the pass took from outside, "items" the number of items; all are kept as medians for
# `Prepared.tables`.
Pass = Callable[[], Mapping[str, float] | None]


@dataclass(frozen=True)
class Arm:
    """One way to do the same thing.

    `open` runs untimed in a process of its own and returns the pass that is timed again and again.
    `before` runs untimed before each pass; what it returns is why the pass does not count, or "".
    `look` runs once in such a process and returns in words how the outcome differs from the
    reference; None where the arm itself is the reference. `warm` lets one pass go by first.
    """

    name: str
    open: Callable[[], Pass]
    items: int
    bytes: int = 0
    group: str = ""
    against: str = ""
    before: Callable[[], str] | None = None
    look: Callable[[], Sequence[str]] | None = None
    warm: bool = True
    size_bytes: int = 0
    note: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.group, self.name


class Missing(NamedTuple):
    """An arm that cannot run: why, and what to do ("not installed: pip install orjson")."""

    name: str
    reason: str
    group: str = ""


class Measured(NamedTuple):
    """The numbers of one arm that tables are made from: median seconds an item, and its own."""

    seconds_per_item: float
    own: Mapping[str, float]


Found = Mapping[tuple[str, str], Measured]


@dataclass(frozen=True)
class Prepared:
    """A bench ready to run on one target. `tables` and `sentences` get the numbers afterwards."""

    target: str
    arms: tuple[Arm, ...]
    missing: tuple[Missing, ...] = ()
    tables: Callable[[Found], Sequence[BenchTable]] = field(default=lambda found: ())
    sentences: Callable[[Found], Sequence[str]] = field(default=lambda found: ())
    code: Callable[[Arm], str] = field(default=lambda arm: "")


@dataclass(frozen=True)
class Bench:
    """`takes` says in words what TARGET may be. `prepare(target, folder)` runs in the bench's own
    process, where it may import and convert; what it writes goes into `folder`.

    `prepare` raises InputError where the target cannot be used. With `functions` a function is
    itself what is measured; other benches get what it returns where a command line names one.
    """

    name: str
    title: str
    takes: str
    item: str
    prepare: Callable[[Any, str], Prepared]
    functions: bool = False


def all_benches() -> tuple[Bench, ...]:
    """Every known bench, in order of name."""
    from jupyter_ioscope import benches

    found: list[Bench] = plugins(benches, "BENCH", "ioscope.benches")
    return tuple(sorted(found, key=lambda bench: bench.name))


def bench_named(name: object) -> Bench:
    """The bench of that name.

    Raises:
        InputError: there is none; the text lists all.
    """
    known = {bench.name: bench for bench in all_benches()}
    if isinstance(name, str) and name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, 1) if isinstance(name, str) else []
    hint = f"did you mean {near[0]}? There are" if near else "choose from"
    raise InputError(f"there is no bench {name!r}; {hint} {', '.join(known)}")
