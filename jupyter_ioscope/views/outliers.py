"""Outlier batches in words: when, how long, and what was likely the cause."""

from __future__ import annotations

from jupyter_ioscope.model.diagnosis import Diagnosis, Likely, Outlier, Stall
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.units import nanoseconds, percent, seconds
from jupyter_ioscope.views.shapes import IOutlier, IOutliers
from jupyter_ioscope.views.words import clean

UNKNOWN = "unknown"
_ROWS, _STALLS = 10, 6
_PHASES = {"wait": "wait", "fetch": "fetch", "step": "step"}


def outliers(profile: Profile, diagnosis: Diagnosis) -> IOutliers:
    """All that a report shows of them: the worst first, and the stalls they belong to."""
    found = diagnosis.outliers
    return IOutliers(
        summary=_summary(profile, diagnosis),
        rows=[_row(profile, row) for row in found.worst[:_ROWS]],
        stalls=[stall_text(row) for row in found.stalls[:_STALLS]],
    )


def _summary(profile: Profile, diagnosis: Diagnosis) -> str:
    found = diagnosis.outliers
    if not found.count:
        return ""
    batches = "1 batch" if found.count == 1 else f"{found.count:,} batches"
    shown = min(len(found.worst), _ROWS)
    worst = f" (the worst {shown} are shown)" if found.count > shown else ""
    if not found.lost_ns:
        return f"{batches} took far longer than usual{worst}; the loop lost nothing by it."
    share = percent(min(1.0, found.lost_ns / profile.wall_ns)) if profile.wall_ns > 0 else ""
    lost = nanoseconds(found.lost_ns)
    return f"{batches} took far longer than usual{worst}: {lost} more, {share} of the run."


def _row(profile: Profile, row: Outlier) -> IOutlier:
    whole = profile.wall_ns or 1
    what = _PHASES.get(row.phase, clean(row.phase, 20))
    batch = f"batch {row.batch:,}" if row.batch >= 0 else f"worker {row.worker}"
    time, usual = nanoseconds(row.time_ns), nanoseconds(row.usual_ns)
    when = seconds(max(0, row.start_ns - profile.start_ns) / 1e9)
    return IOutlier(
        phase=what,
        when=when,
        batch=batch,
        time=time,
        usual=usual,
        cause=cause_text(row),
        title=f"{batch}, at {when}: {what} {time}, usually {usual}. Likely: {_all(row.causes)}",
        x0=_within((row.start_ns - profile.start_ns) / whole),
        x1=_within((row.end_ns - profile.start_ns) / whole),
    )


def cause_text(row: Outlier) -> str:
    """The likeliest cause of an outlier, or that it is unknown."""
    return clean(row.causes[0].text, 200) if row.causes else UNKNOWN


def _all(causes: tuple[Likely, ...]) -> str:
    listed = "; ".join(
        f"{clean(row.text, 160)} (fits {percent(row.fraction, 0)})" for row in causes
    )
    return listed or UNKNOWN


def stall_text(row: Stall) -> str:
    """What belongs together, in one sentence."""
    what = _PHASES.get(row.phase, clean(row.phase, 20))
    often = f"{row.count:,} times" if row.count > 1 else "once"
    lost = f", {nanoseconds(row.lost_ns)} lost" if row.lost_ns else ""
    likely = clean(row.causes[0].text, 200) if row.causes else UNKNOWN
    if row.kind == "epoch_start":
        start = f"The first {what} of an epoch took long ({often}{lost})"
    elif row.every:
        start = (
            f"Every {row.every:,.0f} batches (about {seconds(row.every_s)}) a {what} took "
            f"long ({often}{lost})"
        )
    else:
        start = f"About every {seconds(row.every_s)} a {what} took long ({often}{lost})"
    return f"{start}; likely: {likely}."


def _within(fraction: float) -> float:
    return round(min(1.0, max(0.0, fraction)), 4)
