"""Plotly figures built in Python: charts to zoom, restyle and export.

Each is plain plotly JSON of some kilobytes: no template, no FigureWidget, no numpy arrays. plotly
is imported inside the functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model.comparison import Arm, Comparison
from jupyter_ioscope.model.diagnosis import PARTS, Ceiling, Diagnosis, ThreadWaits
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.optional import need
from jupyter_ioscope.units import rate
from jupyter_ioscope.views.bars import (
    ceiling_axis,
    handing_on,
    limits,
    merged,
    part_label,
    worker_name,
)
from jupyter_ioscope.views.colours import (
    ARM_A,
    ARM_B,
    BAR,
    INK,
    INK_SOFT,
    LIMITING,
    LINE,
    PAPER,
    PART_COLOURS,
    part_colour,
)
from jupyter_ioscope.views.histogram import histogram
from jupyter_ioscope.views.outliers import outliers
from jupyter_ioscope.views.quantities import thinned
from jupyter_ioscope.views.timeline import ROWS, curves
from jupyter_ioscope.views.words import clean

NAMES = ("timeline", "ceilings", "batch_times", "workers", "comparison")
_POINTS = 150  # of one curve, smallest and largest of each stretch kept
_WORKERS = 64
# Where a part of time is of the same kind, the curve has its colour; yellow lines do not read on
# white. All other curves are grey.
_CURVE_COLOURS = {
    "cpu": PART_COLOURS["cpu"],
    "io_wait": PART_COLOURS["disk"],
    "disk_read": PART_COLOURS["disk"],
    "network": "#8A7D00",
}


def figure(
    name: str, profile: Profile, diagnosis: Diagnosis, comparison: Comparison | None = None
) -> Any:
    """A `plotly.graph_objects.Figure`: one of `NAMES`.

    Raises:
        InputError: the name is unknown, or "comparison" was asked for and there is none.
        MissingPackageError: plotly is not installed.
    """
    makers: dict[str, Callable[[], Any]] = {
        "timeline": lambda: timeline_figure(profile, diagnosis),
        "ceilings": lambda: ceilings_figure(diagnosis),
        "batch_times": lambda: batch_times_figure(profile),
        "workers": lambda: workers_figure(diagnosis),
        "comparison": lambda: _compared(comparison),
    }
    if name not in makers:
        raise InputError(f"name={name!r} is no figure; there are {', '.join(NAMES)}")
    return makers[name]()


def timeline_figure(profile: Profile, diagnosis: Diagnosis | None = None) -> Any:
    """All recorded curves over the seconds of the profile, one row each; outliers of the diagnosis
    are marked on the first, with their likely causes in the hover text."""
    rows = [
        (row, label, thinned(curve, _POINTS))
        for row in ROWS
        for label, curve in curves(profile, row)
    ]
    layout: dict[str, Any] = {"height": 80 + 90 * max(1, len(rows)), "showlegend": False}
    traces = []
    for i, (row, label, curve) in enumerate(rows):
        axis = "y" if i == 0 else f"y{i + 1}"
        colour = _CURVE_COLOURS.get(row.key, INK_SOFT)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": label,
                "yaxis": axis,
                "line": {"color": colour, "width": 1.5},
                "x": [round((t - profile.start_ns) / 1e9, 3) for t in curve.time_ns],
                "y": [_short(value / row.unit_size) for value in curve.values],
                "hovertemplate": f"%{{y}} {row.unit} at %{{x}} s<extra></extra>",
            }
        )
        upper = 1 - i / len(rows)
        layout[axis.replace("y", "yaxis")] = {
            "domain": [upper - 0.8 / len(rows), upper],
            "title": {"text": f"{label}<br>{row.unit}", "font": {"size": 11}},
            "rangemode": "tozero",
            "gridcolor": LINE,
            "nticks": 3,
            "anchor": "x",
        }
    last = "y" if len(rows) < 2 else f"y{len(rows)}"
    layout["xaxis"] = {**_axis("seconds"), "anchor": last}
    if rows and diagnosis is not None and diagnosis.outliers.worst:
        traces.append(_outlier_marks(profile, diagnosis))
        layout["shapes"] = _outlier_bands(profile, diagnosis)
    return base_figure(traces, layout, "Timeline", rows or None)


def _outlier_marks(profile: Profile, diagnosis: Diagnosis) -> dict[str, Any]:
    """A mark at the length of each outlier, over the axis of the batch waits."""
    words = outliers(profile, diagnosis)["rows"]
    worst = diagnosis.outliers.worst[: len(words)]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "outliers",
        "yaxis": "y",
        "cliponaxis": False,
        "marker": {"color": LIMITING, "size": 9, "symbol": "triangle-down"},
        "x": [round((row.end_ns - profile.start_ns) / 1e9, 3) for row in worst],
        "y": [_short(row.time_ns / 1e6) for row in worst],
        "text": [row["title"] for row in words],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _outlier_bands(profile: Profile, diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """The stretch of each outlier through all rows: what else happened then."""
    return [
        {
            "type": "rect", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below",
            "x0": round((row.start_ns - profile.start_ns) / 1e9, 3),
            "x1": round((row.end_ns - profile.start_ns) / 1e9, 3),
            "fillcolor": LIMITING, "opacity": 0.15, "line": {"width": 0},
        }
        for row in diagnosis.outliers.worst
    ]  # fmt: skip


def ceilings_figure(diagnosis: Diagnosis) -> Any:
    """What each resource alone would allow, with intervals, and the measured throughput."""
    known = sorted(
        (c for c in diagnosis.ceilings if 0 < c.samples_per_s < float("inf")),
        key=lambda ceiling: -ceiling.samples_per_s,  # plotly draws from below
    )
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": [clean(c.label, 60) for c in known],
        "x": [_short(c.samples_per_s) for c in known],
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [_short(max(0.0, c.high - c.samples_per_s)) for c in known],
            "arrayminus": [_short(max(0.0, c.samples_per_s - c.low)) for c in known],
            "color": INK,
            "thickness": 1,
        },
        "marker": {"color": [LIMITING if limits(c, known[-1]) else BAR for c in known]},
        "text": [clean(c.how, 160) for c in known],
        "textposition": "none",
        "hovertemplate": "%{x} samples/s<br>%{text}<extra></extra>",
    }
    layout: dict[str, Any] = {
        "xaxis": {**_axis("samples/s"), "range": [0, _short(1.05 * _reach(diagnosis, known))]},
        "yaxis": {"automargin": True},
        "showlegend": False,
        "height": 110 + 34 * len(known),
    }
    if known and diagnosis.throughput is not None:
        _mark(layout, diagnosis.throughput.samples_per_s)
    return base_figure([bars], layout, "Ceilings: what each resource alone would allow", known)


def _reach(diagnosis: Diagnosis, known: Sequence[Ceiling]) -> float:
    """Where the axis ends: ceilings far above all others would squeeze those that matter."""
    if not known:
        return 1.0
    now = diagnosis.throughput.samples_per_s if diagnosis.throughput else 0.0
    shown = [row for row in known if row.samples_per_s <= ceiling_axis(known[::-1], now)]
    ends = (row.high for row in shown if math.isfinite(row.high))
    return max(now, min(2 * ceiling_axis(known[::-1], now), max(ends, default=0.0)))


def _mark(layout: dict[str, Any], now: float) -> None:
    """A dashed line at the measured throughput."""
    layout["shapes"] = [
        {
            "type": "line", "x0": now, "x1": now, "y0": 0, "y1": 1, "yref": "paper",
            "line": {"color": INK, "dash": "dash", "width": 1.5},
        }
    ]  # fmt: skip
    layout["annotations"] = [
        {"x": now, "y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False,
         "text": f"now {rate(now)}"}
    ]  # fmt: skip


def batch_times_figure(profile: Profile) -> Any:
    """How often the loop waited how long, and how long its steps took; bars on a log axis."""
    waits = [batch.wait_ns / 1e6 for batch in profile.batches]
    steps = [batch.step_ns / 1e6 for batch in profile.batches]
    edges, counts = histogram((waits, steps))
    traces = [
        {
            "type": "bar",
            "name": name,
            "x": [_short(edge) for edge in edges[:-1]],
            "y": count,
            "width": [_short(b - a) for a, b in pairwise(edges)],
            "offset": 0,
            "opacity": 0.75,
            "marker": {"color": PART_COLOURS[colour]},
            "hovertemplate": f"%{{y}} batches from %{{x}} ms<extra>{name}</extra>",
        }
        for name, count, colour in zip(("wait", "step"), counts, ("other", "step"), strict=True)
    ]
    layout = {
        "xaxis": {**_axis("milliseconds"), "type": "log"},
        "yaxis": _axis("batches"),
        "barmode": "overlay",
    }
    return base_figure(traces, layout, "Batch times", profile.batches)


def workers_figure(diagnosis: Diagnosis) -> Any:
    """Where the time of the consumer and every worker went, as stacked bars in percent."""
    waits = diagnosis.waits
    rows: list[tuple[str, ThreadWaits]] = [(worker_name(w), w) for w in waits.workers[:_WORKERS]]
    if rest := waits.workers[_WORKERS:]:
        rows.append((f"{len(rest)} more", merged(rest)))
    rows += handing_on(waits)
    if waits.consumer is not None:
        rows.insert(0, ("consumer", waits.consumer))
    rows.reverse()  # plotly draws from below
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "name": ", ".join(_labels(part, rows)),
            "y": [name for name, _ in rows],
            "x": [_short(100 * thread.fraction(part)) for _, thread in rows],
            "marker": {"color": part_colour(part)},
            "customdata": [part_label(part, thread.who) for _, thread in rows],
            "hovertemplate": "%{y}: %{customdata} %{x} %<extra></extra>",
        }
        for part in PARTS
        if any(thread.part_ns(part) > 0 for _, thread in rows)
    ]
    layout = {
        "barmode": "stack",
        "xaxis": {"gridcolor": LINE, "range": [0, 100], "ticksuffix": " %"},
        "yaxis": {"automargin": True},
        "height": 150 + 28 * len(rows),
        "legend": {"traceorder": "normal", "orientation": "h", "y": -0.15},
    }
    return base_figure(traces, layout, "Where the time went", rows)


def _labels(part: str, rows: Sequence[tuple[str, ThreadWaits]]) -> list[str]:
    """What a part is called in these rows, the consumer's word first."""
    found = [part_label(part, thread.who) for _, thread in rows if thread.part_ns(part) > 0]
    return list(dict.fromkeys(reversed(found)))


def _compared(comparison: Comparison | None) -> Any:
    if comparison is None:
        raise InputError("name='comparison': nothing was compared yet; call .compare() first")
    return comparison_figure(comparison)


def comparison_figure(comparison: Comparison) -> Any:
    """Every trial of both arms, and each arm's median with its interval."""
    traces = []
    for position, (arm, colour) in enumerate(zip(comparison.arms, (ARM_A, ARM_B), strict=True)):
        trials = [trial for trial in comparison.trials if trial.arm == arm.name]
        count = max(1, len(trials) - 1)
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": f"{arm.name}: {clean(arm.label, 60)}",
                "x": [_short(trial.samples_per_s) for trial in trials],
                "y": [round(position + 0.3 * (i / count - 0.5), 3) for i in range(len(trials))],
                "text": [f"pair {trial.pair + 1}" for trial in trials],
                "marker": {"color": colour, "opacity": 0.6, "size": 8},
                "hovertemplate": "%{x} samples/s, %{text}<extra></extra>",
            }
        )
        traces.append(_interval(arm, position, colour))
    layout = {
        "xaxis": {**_axis("samples/s"), "rangemode": "tozero"},
        "yaxis": {
            "tickvals": [0, 1],
            "ticktext": [f"{arm.name} {clean(arm.label, 40)}" for arm in comparison.arms],
            "range": [1.6, -0.6],
            "zeroline": False,
            "automargin": True,
        },
        "showlegend": False,
        "height": 260,
    }
    return base_figure(traces, layout, "A/B: every trial", comparison.trials)


def _interval(arm: Arm, position: int, colour: str) -> dict[str, Any]:
    values = (arm.samples_per_s_low, arm.samples_per_s, arm.samples_per_s_high)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [_short(value) for value in values],
        "y": [position] * 3,
        "line": {"color": colour, "width": 3},
        "marker": {"symbol": "line-ns-open", "size": 14, "color": colour},
        "hovertemplate": "%{x} samples/s<extra>median and interval</extra>",
    }


def _axis(title: str) -> dict[str, Any]:
    return {"title": {"text": title}, "gridcolor": LINE, "zerolinecolor": LINE}


def base_figure(
    traces: list[dict[str, Any]], layout: dict[str, Any], title: str, rows: Sequence[Any] | None
) -> Any:
    go = need("plotly.graph_objects", "a figure")
    base = {
        "template": {},  # the default one alone is 7 kB; None would bring it in
        "paper_bgcolor": PAPER,  # its own page, so that it reads on dark ones
        "plot_bgcolor": PAPER,
        "font": {"color": INK, "size": 12},
        "title": {"text": title, "font": {"size": 15}},
        "margin": {"l": 90, "r": 30, "t": 60, "b": 50},
        "height": 320,
    }
    if not rows:
        base["annotations"] = [
            {"text": "nothing was recorded", "showarrow": False, "xref": "paper", "yref": "paper",
             "x": 0.5, "y": 0.5}
        ]  # fmt: skip
    return go.Figure(data=traces, layout={**base, **layout})


def _short(value: float) -> float:
    """Four significant digits: what a screen shows, in half the bytes. JSON knows no infinity."""
    return float(f"{value:.4g}") if math.isfinite(value) else 0.0
