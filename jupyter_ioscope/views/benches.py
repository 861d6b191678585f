"""A bench in words: who is how fast, what it holds in memory, and what it gets wrong."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from jupyter_ioscope.model.bench import BenchArm, BenchResult
from jupyter_ioscope.units import NBSP, bytes_text, percent, ratio, ratio_range, seconds
from jupyter_ioscope.views.sections import Section, html_of, text_of

_NOTHING = "–"


def bench_text(found: BenchResult) -> str:
    """A bench as lines of at most 100 columns."""
    return text_of(_headline(found), _sections(found))


def bench_html(found: BenchResult) -> str:
    """A bench as an HTML fragment without scripts."""
    return html_of(_headline(found), _sections(found))


def _headline(found: BenchResult) -> str:
    return f"{found.title}: {found.headline}"


def _sections(found: BenchResult) -> Iterator[Section]:
    yield Section("Target", sentences=(found.target,))
    for group in dict.fromkeys(arm.group for arm in found.arms):
        arms = [arm for arm in found.arms if arm.group == group]
        yield _speeds(group, arms, found)
        yield _uses(arms, found)
    for table in found.tables:
        yield Section(table.title, table.rows, table.sentences)
    yield Section("Notes", sentences=(*found.notes, *_circumstances(found)))
    yield Section("What gets the fastest", code=found.code)


def _speeds(group: str, arms: list[BenchArm], found: BenchResult) -> Section:
    reference = next((arm.against for arm in arms if arm.against), "")
    title = (group or "Speed") + (f", against {reference}" if reference else "")
    head = ("", f"one {found.item}", "bandwidth", "speed", "outcome")
    rows = [head, *(_speed(arm) for arm in arms)]
    return Section(title, _without_empty(rows), tuple(_told(arms)))


def _without_empty(rows: list[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Rows without the columns in which nothing but dashes stands below the head."""
    kept = [n for n in range(len(rows[0])) if any(row[n] != _NOTHING for row in rows[1:])]
    return tuple(tuple(row[n] for n in kept) for row in rows)


def _speed(arm: BenchArm) -> tuple[str, ...]:
    timed = arm.trials > 0
    return (
        arm.name,
        seconds(arm.seconds_per_item) if timed else _NOTHING,
        f"{bytes_text(arm.bytes_per_s)}/s" if arm.bytes_per_s else _NOTHING,
        _ratio(arm) if timed and arm.against else _NOTHING,
        _outcome(arm),
    )


def _ratio(arm: BenchArm) -> str:
    known = arm.ratio_low > 0 and math.isfinite(arm.ratio_high)
    if not known:
        return f"{ratio(arm.ratio)} (too few runs)"
    sure = ratio_range(arm.ratio_low, arm.ratio_high).removeprefix(f"×{NBSP}")
    return f"{ratio(arm.ratio)} ({sure})"


def _uses(arms: list[BenchArm], found: BenchResult) -> Section:
    head = ("", f"CPU of one {found.item}", "memory", "size", "runs")
    rows = [
        (
            arm.name,
            seconds(arm.cpu_s_per_item),
            bytes_text(arm.memory_bytes) if arm.memory_bytes else _NOTHING,
            bytes_text(arm.size_bytes) if arm.size_bytes else _NOTHING,
            str(arm.trials),
        )
        for arm in arms
        if arm.trials
    ]
    return Section("What it uses", _without_empty([head, *rows]) if rows else ())


def _outcome(arm: BenchArm) -> str:
    if arm.verdict == "not installed":
        return arm.differences[0] if arm.differences else arm.verdict
    if arm.verdict == "not tried":
        return arm.verdict
    return {"reference": "reference", "fails": "fails", "not checked": _NOTHING}.get(
        arm.correct, arm.correct
    )


def _told(arms: Iterable[BenchArm]) -> Iterator[str]:
    """What is wrong with whom, then what is to be said of them."""
    for arm in arms:
        if arm.verdict != "not installed" and arm.differences:
            verb = "fails" if arm.correct == "fails" else "differs"
            verb = "was not tried" if arm.verdict == "not tried" else verb
            verb = "not run" if arm.verdict == "failed" and arm.correct == "not checked" else verb
            yield f"{arm.name} {verb}: {'; '.join(arm.differences)}"
    for note, names in _notes(arms).items():
        yield f"{', '.join(names)}: {note}"


def _notes(arms: Iterable[BenchArm]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for arm in arms:
        if arm.note:
            found.setdefault(arm.note, []).append(arm.name)
    return found


def _circumstances(found: BenchResult) -> Iterator[str]:
    if any(arm.memory_bytes for arm in found.arms):
        yield (
            "Memory is what the process grew by at its peak. Pages of mapped files count; the "
            "system takes them back when it needs them."
        )
    yield (
        "Each run had a process of its own, rounds went through all in random order, and the "
        f"middle pass of a run counts; each interval holds with {percent(found.confidence)}, "
        "however often it is looked at."
    )
    if found.isolation_text:
        yield found.isolation_text
    yield f"The bench took {seconds(found.seconds)}."
