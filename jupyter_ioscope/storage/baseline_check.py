"""A new measurement against a saved baseline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model.storage import (
    Baseline,
    BaselineCheck,
    Circumstance,
    JobChange,
    JobResult,
)
from jupyter_ioscope.storage.baseline_trace import SUFFIX
from jupyter_ioscope.units import is_number, percent, seconds

ORDER = ("same", "faster", "warning", "degraded")
_SOURCE = "storage baseline of the article 'AI file I/O stalls'"


class Thresholds(NamedTuple):
    """When a change counts. The first two are the 99th percentile of random 4 KiB requests, the
    other two the loss of bandwidth as a fraction."""

    p99_warning_s: float = 12e-3
    p99_degraded_s: float = 15e-3
    loss_warning: float = 0.05
    loss_degraded: float = 0.08

    def checked(self) -> Thresholds:
        """Itself.

        Raises:
            InputError: a value cannot be used.
        """
        for name, value in self._asdict().items():
            if not (is_number(value) and value > 0):
                raise InputError(f"{name} is {value!r}: give a number above 0")
        for warning, degraded in (self[:2], self[2:]):
            if warning > degraded:
                raise InputError(f"the warning at {warning!r} comes after degraded at {degraded!r}")
        return self

    def text(self) -> str:
        """In words, with the source of the defaults."""
        return (
            f"random 4 KiB requests: a 99th percentile over {seconds(self.p99_warning_s)} warns, "
            f"over {seconds(self.p99_degraded_s)} is degraded; bandwidth: a loss over "
            f"{percent(self.loss_warning)} warns, over {percent(self.loss_degraded)} is degraded, "
            f"if there are several repeats and they do not overlap (defaults: {_SOURCE})"
        )


def thresholds_of(p99_s: object, loss: object) -> Thresholds:
    """The thresholds of two pairs (warns, is degraded).

    Raises:
        InputError: one is no pair, or a number cannot be used.
    """
    numbers: list[float] = []
    for name, pair in (("p99_s", p99_s), ("loss", loss)):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InputError(f"{name} is {pair!r}: give two numbers, (warns, is degraded)")
        numbers += pair
    return Thresholds(*numbers).checked()


def compare(
    before: Baseline, now: Baseline, file: str, thresholds: Thresholds | None = None
) -> BaselineCheck:
    """Judge every job that both have.

    Raises:
        InputError: the circumstances are not alike, or a threshold cannot be used.
    """
    thresholds = (thresholds or Thresholds()).checked()
    refuse_unlike(before, now.circumstances)
    old = {row.key: row for row in before.jobs}
    rows = tuple(
        _change(row, old[row.key], thresholds, _at_device(row, now))
        for row in now.jobs
        if row.key in old
    )
    if not rows:
        raise InputError("the baseline and the new measurement have no job in common")
    return BaselineCheck(
        path=now.path,
        file=file,
        verdict=max((row.verdict for row in rows), key=ORDER.index),
        rows=rows,
        before=before,
        now=now,
        thresholds=thresholds.text(),
        notes=tuple(_notes(before, now)),
    )


def refuse_unlike(before: Baseline, now: Iterable[Circumstance], only_known: bool = False) -> None:
    """`only_known`: `now` holds what is known before anything is measured, and only that counts.

    Raises:
        InputError: the circumstances are not alike.
    """
    old, new = ({row.name: row.value for row in rows if row.binds}
                for rows in (before.circumstances, now))  # fmt: skip
    unlike = [
        f"{name} was {old.get(name, 'unknown')}, is {new.get(name, 'unknown')}"
        for name in (new if only_known else {**old, **new})
        if old.get(name) != new.get(name)
    ]
    if unlike:
        raise InputError(f"not compared, the circumstances differ: {'; '.join(unlike)}")


def _at_device(row: JobResult, now: Baseline) -> str:
    """What the device itself took of a job, where that was traced: ` (the device itself: 140 us)`.
    Much less says that the time went elsewhere: a busy machine, the file system, a limit."""
    wanted = (row.engine + SUFFIX, *row.key[1:])
    found = next((one for one in now.jobs if one.key == wanted), None)
    return f" (the device itself: {seconds(found.p99_s)})" if found is not None else ""


def _change(row: JobResult, old: JobResult, limits: Thresholds, at_device: str) -> JobChange:
    change = row.bytes_per_s / old.bytes_per_s - 1 if old.bytes_per_s > 0 else 0.0
    once = 1 in (row.repeats, old.repeats)  # no spread is known: any two runs would be apart
    apart = not once and (
        row.bytes_per_s_high < old.bytes_per_s_low or row.bytes_per_s_low > old.bytes_per_s_high
    )
    told: list[tuple[str, str]] = []  # (verdict, reason)
    if apart and change < -limits.loss_warning:
        found = "degraded" if change < -limits.loss_degraded else "warning"
        told.append((found, f"{percent(-change)} less bandwidth"))
    elif apart and change > limits.loss_warning:
        told.append(("faster", f"{percent(change)} more bandwidth"))
    elif abs(change) > limits.loss_warning:
        why = "it ran once" if once else "the repeats overlap"
        text = f"{percent(change)} bandwidth, but {why}: not told apart"
        told.append(("same", text))
    # The two limits on latency are for small random requests; a large one takes longer anyway.
    if row.pattern.startswith("rand") and row.p99_s > limits.p99_warning_s:
        found = "degraded" if row.p99_s > limits.p99_degraded_s else "warning"
        told.append((found, f"99th percentile {seconds(row.p99_s)}{at_device}"))
    told.sort(key=lambda one: -ORDER.index(one[0]))  # the reason of the verdict comes first
    verdict = told[0][0] if told else "same"
    return JobChange(row, old, change, apart, verdict, tuple(text for _, text in told))


def _notes(before: Baseline, now: Baseline) -> Iterator[str]:
    old = {row.name: row.value for row in before.circumstances}
    for row in now.circumstances:
        if not row.binds and old.get(row.name, row.value) != row.value:
            yield f"{row.name} was {old[row.name]}, is {row.value}"
    if any(row.repeats == 1 for one in (before, now) for row in one.jobs):
        yield (
            "of jobs that ran once it is not known how far runs differ: no change of their "
            "bandwidth counts; 3 repeats or more tell"
        )
    for text in now.not_measured:
        yield f"not measured: {text}"
    then, there = ({row.key for row in one.jobs} for one in (before, now))
    for where, keys in (
        ("in the baseline only", then - there),
        ("not in the baseline", there - then),
    ):
        for engine, pattern, _, depth in sorted(keys):
            yield f"{where}: {pattern} with {engine}, depth {depth}"
