"""Storage baselines and their checks in words."""

from __future__ import annotations

from collections.abc import Iterator

from jupyter_ioscope.model.storage import Baseline, BaselineCheck, JobChange, JobResult
from jupyter_ioscope.units import bytes_text, percent, seconds, significant
from jupyter_ioscope.views.sections import Section, block_text, html_of, text_of

_VERDICTS = {
    "same": "is as it was",
    "faster": "is faster than it was",
    "warning": "may be degrading",
    "degraded": "is degraded",
}


def baseline_text(found: Baseline) -> str:
    """A baseline as lines of at most 100 columns."""
    return text_of(_measured(found), _baseline(found))


def baseline_html(found: Baseline) -> str:
    """A baseline as an HTML fragment without scripts."""
    return html_of(_measured(found), _baseline(found))


def _measured(found: Baseline) -> str:
    how = "past the page cache" if found.direct else "through the page cache: not the device alone"
    return f"Baseline of {found.path}, by {found.tool}, {how}"


def _baseline(found: Baseline) -> Iterator[Section]:
    head = ("job", "engine", "block", "depth", "bandwidth", "requests/s", "median", "99 %")
    rows = tuple(_job(row) for row in found.jobs)
    repeats = max((row.repeats for row in found.jobs), default=0)
    yield Section(f"Median of {repeats} runs", (head, *rows))
    yield Section("Not measured", sentences=found.not_measured)
    facts = tuple(
        (row.name, row.value, "yes" if row.binds else "no") for row in found.circumstances
    )
    yield Section("Circumstances", (("", "value", "must be the same"), *facts))


def _job(row: JobResult) -> tuple[str, ...]:
    return (
        row.pattern,
        row.engine,
        block_text(row.block_bytes),
        str(row.depth),
        _bandwidth(row),
        significant(row.requests_per_s) if row.requests_per_s else "–",
        seconds(row.p50_s),
        seconds(row.p99_s),
    )


def _bandwidth(row: JobResult) -> str:
    """Traces of the device know latencies only."""
    return f"{bytes_text(row.bytes_per_s)}/s" if row.bytes_per_s else "–"


def check_headline(found: BaselineCheck) -> str:
    """The verdict, and of the jobs that are the reason of it the one that changed most."""
    worst = [row for row in found.rows if row.verdict == found.verdict and row.reasons]
    most = max(worst, key=lambda row: abs(row.change), default=None)
    why = f": {_name(most.job)}, {most.reasons[0]}" if most is not None else ""
    return f"{found.path} {_VERDICTS.get(found.verdict, found.verdict)}{why}"


def check_text(found: BaselineCheck) -> str:
    """A check as lines of at most 100 columns."""
    return text_of(check_headline(found), _check(found))


def check_html(found: BaselineCheck) -> str:
    """A check as an HTML fragment without scripts."""
    return html_of(check_headline(found), _check(found))


def _check(found: BaselineCheck) -> Iterator[Section]:
    head = ("job", "then", "now", "change", "99 % then", "now", "verdict")
    title = f"Against the baseline of {found.before.created_utc} ({found.file})"
    yield Section(title, (head, *(_change(row) for row in found.rows)))
    told = [row for row in found.rows if row.reasons]
    yield Section(
        "Reasons", sentences=tuple(f"{_name(row.job)}: {', '.join(row.reasons)}" for row in told)
    )
    yield Section("Notes", sentences=(found.thresholds, *found.notes))


def _name(row: JobResult) -> str:
    return f"{row.pattern} {block_text(row.block_bytes)} ({row.engine}, depth {row.depth})"


def _change(row: JobChange) -> tuple[str, ...]:
    return (
        f"{row.job.pattern}, {row.job.engine}, {row.job.depth}",
        _bandwidth(row.before),
        _bandwidth(row.job),
        f"{'+' if row.change >= 0 else ''}{percent(row.change)}" if row.job.bytes_per_s else "–",
        seconds(row.before.p99_s),
        seconds(row.job.p99_s),
        row.verdict,
    )
