"""From verdicts to figures: how often the first cause is right, how often healthy loaders are not
believed, what is taken for what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tests.accuracy.coarse import is_loader, resource_of
from tests.accuracy.entries import HEALTHY
from tests.accuracy.judge import Verdict
from tests.bench.measure import Interval, at_most_interval


class Rate(NamedTuple):
    """`events` of `tries`."""

    events: int
    tries: int

    @property
    def interval(self) -> Interval | None:
        """Share with Wilson's 95 % interval; None without a try."""
        return at_most_interval(self.events, self.tries) if self.tries else None


class Scores(NamedTuple):
    """The figures of a set of verdicts. Rates about causes are of runs with a trouble."""

    first: Rate
    first_two: Rate
    abstained: Rate
    advised: Rate
    alarms: Rate  # a healthy loader in which a trouble is found
    repaired_named: Rate  # the repaired variant of a case, and what was repaired comes first
    repaired_other: Rate  # the same, and something else comes first


def scores(verdicts: Iterable[Verdict]) -> Scores:
    """Figures of verdicts; those of skipped runs count nowhere."""
    rows = [row for row in verdicts if not row.skipped]
    troubled = [row for row in rows if not row.entry.healthy]
    sound = [row for row in rows if row.entry.healthy and not row.entry.repaired]
    repaired = [row for row in rows if row.entry.healthy and row.entry.repaired]
    return Scores(
        first=_rate(troubled, lambda row: row.right()),
        first_two=_rate(troubled, lambda row: row.right(2)),
        abstained=_rate(troubled, lambda row: row.abstains),
        advised=_rate(
            [row for row in troubled if row.advised is not None], lambda row: bool(row.advised)
        ),
        alarms=_rate(sound, lambda row: not row.right()),
        repaired_named=_rate(repaired, lambda row: row.first in row.entry.gone),
        repaired_other=_rate(
            repaired, lambda row: not row.right() and row.first not in row.entry.gone
        ),
    )


def _rate(rows: Sequence[Verdict], holds: Callable[[Verdict], bool]) -> Rate:
    return Rate(sum(holds(row) for row in rows), len(rows))


class CauseRow(NamedTuple):
    """How one label fared: its runs, and what was said first instead of it, most often first."""

    label: str
    first: Rate
    first_two: Rate
    instead: tuple[tuple[str, int], ...]


def by_cause(verdicts: Iterable[Verdict]) -> list[CauseRow]:
    """One row a label, sorted by label. A run counts under the first of its accepted labels."""
    groups: dict[str, list[Verdict]] = {}
    for row in verdicts:
        if not row.skipped and not row.entry.repaired:
            groups.setdefault(row.entry.causes[0], []).append(row)
    made = []
    for label, rows in sorted(groups.items()):
        wrong = Counter(said(row) for row in rows if not row.right())
        made.append(
            CauseRow(
                label,
                _rate(rows, lambda row: row.right()),
                _rate(rows, lambda row: row.right(2)),
                tuple(wrong.most_common()),
            )
        )
    return made


NOTHING = "nothing found"


def said(row: Verdict) -> str:
    """The label a verdict counts as: a loader with a trouble of which nothing is found is not
    called healthy, and any accepted label counts as the first of them."""
    if not row.causes:
        return HEALTHY if row.entry.healthy else NOTHING
    return row.entry.causes[0] if row.right() else row.first


def confusion(verdicts: Iterable[Verdict]) -> Counter[tuple[str, str]]:
    """(label that is true, label that was said) -> runs. Repaired variants are left out: what is
    left to gain in them nobody knows."""
    counted: Counter[tuple[str, str]] = Counter()
    for row in verdicts:
        if not row.skipped and not row.entry.repaired:
            counted[row.entry.causes[0], said(row)] += 1
    return counted


class Coarse(NamedTuple):
    """A tool on the coarse question, on the same runs."""

    loader: Rate  # loaders with a trouble that are called the problem
    consumer: Rate  # loops whose consumer is the limit that are called so
    resource: Rate  # loops of which the right resource is named
    silent: int  # runs of which it could say nothing


def coarse(verdicts: Iterable[Verdict]) -> dict[str, Coarse]:
    """Every tool's figures, ioscope's own first, without repaired variants."""
    rows = [row for row in verdicts if not row.skipped and not row.entry.repaired]
    answers: dict[str, list[tuple[str, bool | None, str]]] = {}
    for row in rows:
        truth = row.entry.causes[0]
        answers.setdefault("ioscope", []).append((truth, *_own_answer(row)))
        for tool, answer in row.baselines:
            answers.setdefault(tool, []).append((truth, answer.loader, answer.resource))
    return {tool: _coarse(said) for tool, said in answers.items()}


def _own_answer(row: Verdict) -> tuple[bool, str]:
    first = row.first
    return is_loader(first), resource_of(first)


def _coarse(answers: Sequence[tuple[str, bool | None, str]]) -> Coarse:
    loaders = [loader for truth, loader, _ in answers if is_loader(truth)]
    others = [loader for truth, loader, _ in answers if not is_loader(truth)]
    named = [resource == resource_of(truth) for truth, _, resource in answers]
    return Coarse(
        loader=Rate(sum(loader is True for loader in loaders), len(loaders)),
        consumer=Rate(sum(loader is False for loader in others), len(others)),
        resource=Rate(sum(named), len(named)),
        silent=sum(loader is None for _, loader, _ in answers),
    )


class Known(NamedTuple):
    """A part of a loop whose share is known, and what the diagnosis says of it."""

    name: str
    cause: str
    share: float
    found: float  # 0 where it is not among the findings
    inside: bool  # whether the reported interval holds the known share


# Labels that say the same thing of a loop without workers.
_SAME = (frozenset({"no_workers_cpu_bound", "decode_cpu"}),)


def known_shares(verdicts: Iterable[Verdict]) -> list[Known]:
    """One row for each part of each mixed loader."""
    made = []
    for row in verdicts:
        if row.skipped:
            continue
        for cause, share in row.entry.shares:
            same = next((names for names in _SAME if cause in names), frozenset({cause}))
            matching = [
                shares for name, shares in zip(row.causes, row.shares, strict=True) if name in same
            ]
            found, low, high = matching[0] if matching else (0.0, 0.0, 0.0)
            made.append(Known(row.entry.name, cause, share, found, low <= share <= high))
    return made
