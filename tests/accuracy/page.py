"""The tables of notebooks/accuracy.md, from verdicts and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import mean

from tests.accuracy.corpus import NOT_REBUILT
from tests.accuracy.judge import Verdict
from tests.accuracy.record import TIERS
from tests.accuracy.scoring import (
    Rate,
    Scores,
    by_cause,
    coarse,
    confusion,
    known_shares,
    scores,
)

INTRODUCTION = """\
# Accuracy

How often the diagnosis is right, as `make accuracy` measured it. The file is written by that
command; the loaders and the scoring are in `tests/accuracy/`. Your machine gives other numbers: run
it there.

Every loader has one trouble (at three severities: the mildest costs about a third of the loop), or
several with known shares, or none. *First* is the share of runs whose first finding is the trouble,
*first two* among the first two. *Abstained*: nothing was found, or the first two causes could not
be told apart. *Alarm*: a trouble was found in a healthy loader. *Advice* is right when its words
name the change. Shares carry Wilson's 95 % interval. Runs are single: nothing is repeated until it
comes out right.

The rules were worked on with such profiles at hand: where one was judged wrong, a reason that holds
for others was looked for. So these figures are no independent test; they say how the rules do on
loaders like these. Shares of CPU, of waiting for a core and the steps' lengths depend on what else
the machine did meanwhile.

Independent tests, on 2026-11-30: loaders written and labelled by others, who did not know the
rules, each judged once, with full evidence. First set, on a crowded machine: the first cause was
right in 34 of 53 (64 %, 51 to 76), no alarm in 9 healthy ones. After the rules had learnt from
these, a second set on a quiet machine: 22 of 28 (79 %, 60 to 90), no alarm in 6 healthy ones. After
what these taught, a third one on 2026-12-01, beside some other work: 22 of 24 (92 %, 74 to 98), no
alarm in 8 healthy ones. That is what to expect of loaders that nobody here has seen. Most of them
are in `tests/accuracy/blind/` since, told as *written blind* below: the rules know them now.
"""

TIER_WORDS = {
    "full": "full: states of threads, and stacks from outside",
    "no_ptrace": "no_ptrace: the right to look into processes is refused",
    "in_process": "in_process: no sampler, records only",
}

GOALS = {
    "first": "at least 90 %",
    "first_two": "at least 97 %",
    "abstained": "at most 10 %",
    "advised": "at least 85 %",
    "alarms": "at most 5 %",
    "repaired_named": "",
    "repaired_other": "",
}

FIGURE_WORDS = {
    "first": "the first cause is right",
    "first_two": "among the first two",
    "abstained": "abstained",
    "advised": "the advice names the change",
    "alarms": "alarm in a healthy loader",
    "repaired_named": "repaired case: the repaired cause comes first",
    "repaired_other": "repaired case: another cause comes first",
}

# (group of entries, its name, what it has)
GROUPS = (
    ("mixed", "mixed", "several causes"),
    ("blind slow", "written blind", "one cause each, by others"),
    ("case slow", "case slow", "cases from a folder"),
)

TOOLS = """\
Is it the loader, and which of four resources is short (consumer, CPU, device or network, other)?
Every label belongs to one of them (`tests/accuracy/coarse.py`). The other tools' rules are
re-implemented from their sources (`tests/accuracy/baselines.py`) and see the same runs. Most name
no resource: the last column counts what they do say, no more."""


def page(verdicts: Sequence[Verdict], machine: str, date: str) -> str:
    """The whole file."""
    full = [row for row in verdicts if row.tier == "full"]
    parts = [
        INTRODUCTION,
        f"{machine}; judged {date}.\n",
        *(f"- {line}" for line in recorded(verdicts)),
        "",
        section("Figures", figures(verdicts)),
        section("By severity, full evidence", severities(full)),
        section("By cause, full evidence", causes(full)),
        section("Taken for something else, with less evidence", taken_for(verdicts)),
        section("Several causes with known shares", shares(full)),
        section("Beside the rules of other tools", tools(full)),
        section("What was taken for what, full evidence", matrix(full)),
        section("Not measured", not_measured(verdicts)),
    ]
    return "\n".join(parts)


def section(title: str, lines: Iterable[str]) -> str:
    return f"## {title}\n\n" + "\n".join(lines) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A Markdown table."""
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def rate(value: Rate) -> str:
    """As in "44 of 50: 88 % (76 to 94)"; a dash without a try."""
    interval = value.interval
    if interval is None:
        return "–"
    share, low, high = (100 * part for part in interval)
    return f"{value.events} of {value.tries}: {share:.0f} % ({low:.0f} to {high:.0f})"


def figures(verdicts: Sequence[Verdict]) -> Iterator[str]:
    tiers = [tier for tier in TIERS if any(row.tier == tier for row in verdicts)]
    by_tier = [scores(row for row in verdicts if row.tier == tier) for tier in tiers]
    rows = [
        [FIGURE_WORDS[name], *(rate(getattr(made, name)) for made in by_tier), GOALS[name]]
        for name in Scores._fields
        if any(getattr(made, name).tries for made in by_tier)
    ]
    yield from table(["", *tiers, "goal"], rows)
    yield ""
    yield from (f"- {TIER_WORDS[tier]}" for tier in tiers)


def recorded(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """How many profiles of each tier there are, and when they were recorded."""
    for tier in TIERS:
        times = sorted(row.recorded for row in verdicts if row.tier == tier and row.recorded)
        if times:
            first, last = (time[:16].replace("T", " ") for time in (times[0], times[-1]))
            yield f"{tier}: {len(times)} profiles, recorded {first} to {last} UTC"


def taken_for(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Labels that came out wrong in the lower tiers, and what was said instead."""
    for tier in TIERS[1:]:
        wrong = [
            row
            for row in by_cause(row for row in verdicts if row.tier == tier)
            if row.first.events < row.first.tries
        ]
        told = "; ".join(
            f"`{row.label}` ({', '.join(f'{label} ×{count}' for label, count in row.instead)})"
            for row in wrong
        )
        yield f"- {tier}: {told or 'nothing'}."


def severities(verdicts: Sequence[Verdict]) -> Iterator[str]:
    names = [("severe", "nothing but the trouble"), ("clear", "two thirds"), ("mild", "a third")]
    rows = []
    for name, words in names:
        made = scores(row for row in verdicts if row.entry.severity == name)
        rows.append([name, words, *map(rate, (made.first, made.first_two, made.abstained))])
    for group, name, words in GROUPS:
        made = scores(row for row in verdicts if row.entry.group == group)
        if made.first.tries:
            alarms = made.alarms
            words += f"; alarm in {alarms.events} of {alarms.tries} healthy" if alarms.tries else ""
            rows.append([name, words, *map(rate, (made.first, made.first_two, made.abstained))])
    yield from table(["severity", "of the loop", "first", "first two", "abstained"], rows)


def causes(verdicts: Sequence[Verdict]) -> Iterator[str]:
    yield from table(
        ["cause", "first", "first two", "said instead"],
        (
            [
                f"`{row.label}`",
                f"{row.first.events} of {row.first.tries}",
                f"{row.first_two.events} of {row.first_two.tries}",
                ", ".join(f"{label} ×{count}" for label, count in row.instead),
            ]
            for row in by_cause(verdicts)
        ),
    )


def shares(verdicts: Sequence[Verdict]) -> Iterator[str]:
    rows = known_shares(verdicts)
    yield from table(
        ["loader", "cause", "known", "reported", "known share inside the interval"],
        (
            [
                row.name,
                f"`{row.cause}`",
                f"{row.share:.0%}",
                f"{row.found:.0%}",
                "yes" if row.inside else "no",
            ]
            for row in rows
        ),
    )
    if rows:
        error = mean(abs(row.found - row.share) for row in rows)
        yield ""
        yield f"Mean error {100 * error:.0f} points over {len(rows)} parts."


def tools(verdicts: Sequence[Verdict]) -> Iterator[str]:
    yield TOOLS
    yield ""
    yield from table(
        ["tool", "trouble in the loader seen", "consumer-bound loop seen", "resource right"],
        (
            [
                tool + (f" ({made.silent} runs without an answer)" if made.silent else ""),
                rate(made.loader),
                rate(made.consumer),
                rate(made.resource),
            ]
            for tool, made in coarse(verdicts).items()
        ),
    )


def matrix(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Rows are true, columns are said; columns carry the rows' numbers. Empty is 0."""
    counted = confusion(verdicts)
    true = sorted({truth for truth, _ in counted})
    labels = [*true, *sorted({said for _, said in counted} - set(true))]
    numbers = {label: str(number) for number, label in enumerate(labels, 1)}
    columns = [label for label in labels if any(counted[truth, label] for truth in true)]
    yield "Rows are what is true, columns what came first."
    yield ""
    rows = [
        [f"{numbers[truth]} `{truth}`", *(str(counted[truth, said] or "") for said in columns)]
        for truth in true
    ]
    yield from table(["", *(numbers[label] for label in columns)], rows)
    extra = [f"{numbers[label]} {label}" for label in labels if label not in true]
    if extra:
        yield ""
        yield f"Said but never true here: {'; '.join(extra)}."


def not_measured(verdicts: Sequence[Verdict]) -> Iterator[str]:
    for label, reason in NOT_REBUILT.items():
        yield f"- `{label}`: no loader of this corpus has it: {reason}."
    for row in verdicts:
        if row.skipped:
            own = not row.entry.group.startswith("case")
            yield f"- {row.entry.name if own else 'a case'} ({row.tier}): {row.skipped}."
