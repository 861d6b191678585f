"""The report and a comparison for terminals: at most 100 columns, verdict first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from jupyter_ioscope.model.comparison import Comparison, Offer
from jupyter_ioscope.model.diagnosis import Diagnosis
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.units import NBSP, percent, rate, seconds
from jupyter_ioscope.views.bars import FEEDERS
from jupyter_ioscope.views.block import HEAD, block_cells
from jupyter_ioscope.views.payload import (
    Size,
    comparison_payload,
    report_payload,
    worth_showing,
)
from jupyter_ioscope.views.results import Result
from jupyter_ioscope.views.shapes import IBar, IComparison, IGrid, IReport
from jupyter_ioscope.views.words import columns_of, fit, wrap

WIDTH = 100
_BAR, _SHORT_BAR = 32, 8
_CEILING = 32  # columns of a ceiling's name
_FINDINGS, _OUTLIERS = 5, 5
_NO_FLAMES = Size(frames=1, points=2)  # neither is shown as text
# One sign a part, so that a bar reads without colour.
_SIGNS = {
    "step": "▒", "cpu": "█", "run_queue": "▚", "disk": "▓", "page_fault": "▞", "network": "≈",
    "sleep": "z", "process": "&", "gil": "╳", "lock": "╬", "hand_over": "→", "start_up": "^",
    "idle": "·", "other": "?", "rest": "-",
}  # fmt: skip


def report_text(
    profile: Profile,
    diagnosis: Diagnosis,
    offers: Sequence[Offer] = (),
    comparisons: Sequence[Result] = (),
    variable: str = "_ioscope",
) -> str:
    """The whole report as lines of at most 100 columns."""
    return text_of(
        report_payload(profile, diagnosis, offers, comparisons, variable, size=_NO_FLAMES, grown=())
    )


def text_of(report: IReport) -> str:
    """The text of a payload that exists already."""
    blocks = [
        _head(report),
        _where_time_went(report),
        _ceilings(report),
        _findings(report),
        _outliers(report),
        _transforms(report),
        _toggles(report),
        *(_comparison(one) for one in report["comparisons"]),
        _foot(report),
    ]
    return "\n\n".join("\n".join(lines) for block in blocks if (lines := list(block))) + "\n"


def comparison_text(comparison: Comparison) -> str:
    """One comparison as lines of at most 100 columns."""
    return "\n".join(_comparison(comparison_payload(comparison))) + "\n"


def live_line(batches_per_s: float, wait_fraction: float, elapsed_s: float) -> str:
    """The one line shown while a cell runs, of about the same width all the time."""
    if not math.isfinite(batches_per_s) or batches_per_s <= 0:
        return f"ioscope: recording, no batch yet · {seconds(max(0.0, elapsed_s))}"
    waiting = percent(min(1.0, max(0.0, wait_fraction)), 0) if math.isfinite(wait_fraction) else "–"
    speed = rate(batches_per_s, "batches")
    return f"ioscope: {speed} · waiting for data {waiting} of the time · {seconds(elapsed_s)}"


def _head(report: IReport) -> Iterator[str]:
    yield from wrap(report["headline"] or "No verdict.", WIDTH)
    if report["ended"]:
        yield from wrap(report["ended"], WIDTH)
    if report["detail"]:
        yield from wrap(report["detail"], WIDTH)
    if not report["separated"] and report["wouldSeparate"]:
        yield from wrap(f"Not told apart: {report['wouldSeparate']}", WIDTH)
    numbers = [f"{figure['value']} {figure['label']}" for figure in report["figures"]]
    if numbers:
        yield ""
        yield from _joined(numbers)


def _joined(items: Sequence[str]) -> Iterator[str]:
    """Items side by side; an item is never broken over two lines unless it is a line by itself."""
    line = ""
    for item in items:
        joined = f"{line}  |  {item}" if line else item
        if columns_of(joined) > WIDTH and line:
            yield line
            joined = item
        line = joined
    yield from wrap(line, WIDTH)


def _where_time_went(report: IReport) -> Iterator[str]:
    if not report["bars"]:
        return
    yield "Where the time went"
    width = min(24, max(columns_of(bar["who"]) for bar in report["bars"]))
    for bar in report["bars"]:
        largest = sorted(bar["parts"], key=lambda part: -part["fraction"])
        listed = ", ".join(
            f"{part['label']} {part['text']}" for part in largest if part["fraction"] >= 0.01
        )
        start = f"  {_pad(fit(bar['who'], width), width)}  {_blocks(bar)}  "
        yield from wrap(listed or "nothing recorded", WIDTH, start, " " * columns_of(start))
    if any(bar["who"] == FEEDERS for bar in report["bars"]):
        yield "  Feeder threads pack what a worker has finished and send it to the loop."
    yield from _phases(report, width)
    yield from _traced(report)
    signs = [f"{_SIGNS[entry['name']]} {entry['label']}" for entry in report["legend"]]
    yield from wrap("   ".join(signs), WIDTH, "  ", "  ")


def _phases(report: IReport, width: int) -> Iterator[str]:
    """The phases of the fetching threads in one line, then who wanted the cores."""
    parts = [f"{row['label']} {row['share']}" for row in report["phases"]]
    if parts:
        start = f"  {_pad('fetchers were', width)}  "
        yield from wrap(", ".join(parts), WIDTH, start, " " * columns_of(start))
    if report["cores"]:
        yield from wrap(report["cores"], WIDTH, "  ", "  ")


def _traced(report: IReport) -> Iterator[str]:
    """Requests of block devices, where they were traced."""
    if rows := report.get("block", []):
        cells = [HEAD, *map(block_cells, rows)]
        lines = table_lines([row[:-1] for row in cells])
        for line, row in zip(lines, cells, strict=True):
            yield fit(f"{line}   {row[-1]}", WIDTH).rstrip()


def _blocks(bar: IBar) -> str:
    """The bar with exactly `_BAR` signs: each ends where its part ends, so the sum is right."""
    signs, upto = "", 0.0
    for part in bar["parts"]:
        upto += part["fraction"]
        signs += _SIGNS[part["name"]] * (round(min(1.0, upto) * _BAR) - len(signs))
    return "[" + signs.ljust(_BAR) + "]"


def _ceilings(report: IReport) -> Iterator[str]:
    if not report["ceilings"]:
        return
    now = report["ceilingNow"]
    yield "Ceilings: samples/s that each resource alone would allow" + (
        f" ({now['text']})" if now else ""
    )
    rows = [(row, row["text"] + "  limiting" * row["limiting"]) for row in report["ceilings"]]
    width = min(_CEILING, max(columns_of(row["label"]) for row, _ in rows))
    # words are worth more than the length of bars
    room = WIDTH - 6 - width - max(columns_of(text) for _, text in rows)
    longest = max(_SHORT_BAR, min(_BAR, room))
    for row, text in rows:
        bar = ("█" if row["limiting"] else "░") * max(1, round(row["fraction"] * longest))
        label = _pad(fit(row["label"], width), width)
        yield fit(f"  {label}  {bar.ljust(longest)}  {text}", WIDTH)


def _findings(report: IReport) -> Iterator[str]:
    shown = report["findings"][:_FINDINGS]
    if not shown:
        return
    yield "Findings: share of the time that removing the cause would free"
    for number, finding in enumerate(shown, 1):
        title = f"{finding['share']}, {finding['cost']}: {finding['title']}"
        yield from wrap(title, WIDTH, f"  {number}. ", " " * 5)
        for text in (finding["where"], *finding["evidence"]):
            if text:
                yield from wrap(text, WIDTH, "     - ", " " * 7)
        if finding["advice"]:
            yield from wrap(finding["advice"], WIDTH, "     → ", " " * 7)
    if more := len(report["findings"]) - len(shown):
        where = f" in {report['variable']}.diagnosis.findings" if report["variable"] else ""
        yield f"  and {more} more{where}"


def _outliers(report: IReport) -> Iterator[str]:
    found = report["outliers"]
    if not found["summary"]:
        return
    yield "Batches that stood out"
    yield from wrap(found["summary"], WIDTH, "  ", "  ")
    for stall in found["stalls"]:
        yield from wrap(stall, WIDTH, "  - ", "    ")
    longest = max((columns_of(row["batch"]) for row in found["rows"]), default=0)
    for row in found["rows"][:_OUTLIERS]:
        text = f"at {row['when']}: {row['phase']} {row['time']}, usually {row['usual']}"
        start = f"  {_pad(row['batch'], longest)}  "
        yield from wrap(f"{text}; likely: {row['cause']}", WIDTH, start, " " * len(start))
    if (more := len(found["rows"]) - _OUTLIERS) > 0:
        yield f"  and {more} more"


def _transforms(report: IReport) -> Iterator[str]:
    rows = report.get("transforms", [])
    if not rows:
        return
    yield "Transforms of datasets: how many came from the cache"
    table = [("", "from cache", "rows", "time")]
    table += [(fit(row["name"], 50), row["hits"], row["rows"], row["time"]) for row in rows]
    yield from table_lines(table)
    for row in rows:
        if row["why"]:
            yield from wrap(f"{row['name']}: {row['why']}", WIDTH, "  missed: ", "    ")


def _toggles(report: IReport) -> Iterator[str]:
    if not report["toggles"]:
        return
    yield "To try"
    shown, others, refused = worth_showing(report["toggles"])
    for toggle in shown:
        mark = "*" if toggle["suggested"] else " "
        gain = f" Predicted: {toggle['predicted']}." if toggle["predicted"] else ""
        line = (
            f"{toggle['title']} ({toggle['name']}): {toggle['effect']} Cost: {toggle['cost']}{gain}"
        )
        yield from wrap(line, WIDTH, f"  {mark} ", "    ")
    if others:
        yield from wrap(f"Also: {', '.join(others)}.", WIDTH, "    ", "    ")
    for line in refused:
        yield from wrap(line, WIDTH, "    does not apply: ", "      ")


def _comparison(comparison: IComparison) -> Iterator[str]:
    yield from wrap(f"{comparison['title']}: {comparison['headline']}", WIDTH)
    for line in (*comparison["lines"], *comparison.get("how", [])):
        yield from wrap(line, WIDTH, "  ", "    ")
    if grid := comparison.get("grid"):
        yield from _grid(grid)
    rows = [("", "samples/s", "CPU / sample", "first batch", "peak memory", "trials")]
    for arm in comparison["arms"]:
        name = fit(f"{arm['name']}  {arm['label']}", 30)
        numbers = (arm["throughput"], arm["cpu"], arm["firstBatch"], arm["memory"])
        rows.append((name, *numbers, str(arm["trials"])))
    if comparison["arms"]:
        yield from table_lines(rows)
    for note in comparison["notes"]:
        yield from wrap(note, WIDTH, "  Note: ", "    ")
    if comparison["code"]:
        yield "  Code of the winner:"
        for line in comparison["code"].split("\n"):
            words = line.lstrip(" ")
            lead = " " * (4 + len(line) - len(words))
            yield from wrap(words, WIDTH, lead, lead) or [""]


def _grid(grid: IGrid) -> Iterator[str]:
    """A search: samples/s of every setting, with a star at what was timed and not predicted."""
    rows = [(fit(grid["corner"], 30), *grid["columns"])]
    for row in grid["rows"]:
        cells = (cell["text"] + "*" * cell["timed"] for cell in row["cells"])
        rows.append((row["label"], *cells))
    yield from table_lines(rows)
    yield "  samples/s; * timed, the others predicted"


def table_lines(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(columns_of(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [_pad(row[0], widths[0])]
        pairs = zip(row[1:], widths[1:], strict=True)
        cells.extend(_pad(text, width, right=True) for text, width in pairs)
        yield fit("  " + "   ".join(cells), WIDTH).rstrip()


def _pad(text: str, width: int, right: bool = False) -> str:
    space = " " * max(0, width - columns_of(text))
    return space + text if right else text + space


def _foot(report: IReport) -> Iterator[str]:
    if report["tier"]:
        yield from wrap(report["tier"], WIDTH)
    yield from wrap(report["cost"], WIDTH)
    for gap in report["notMeasured"]:
        yield from wrap(f"{gap['what']}: {gap['reason']}", WIDTH, "Not measured: ", "  ")
    if report["variable"]:
        yield f"The profile is in{NBSP}{report['variable']}."
