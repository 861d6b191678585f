"""Shapes of the report's payload: `labextension/src/payload.ts` in Python, name for name.

A test reads the interfaces there and keeps the two equal. Texts are plain text, never markup.
"""

from __future__ import annotations

from typing import Any, TypedDict

MIME = "application/vnd.ioscope.report+json"
FORMAT = 1


class IPart(TypedDict):
    """One coloured piece of a bar. `fraction` is of the row's wall time (0-1)."""

    name: str
    label: str
    fraction: float
    text: str


class IBar(TypedDict):
    """Where one thread's time went."""

    who: str
    title: str
    parts: list[IPart]


class _FigureBase(TypedDict):
    value: str
    label: str


class IFigure(_FigureBase, total=False):
    """One number in the head of the report.

    `name` and `whole` are its row and its cell in a table that sets two profiles side by side: the
    same name for the same quantity, whatever is known of it. Without `whole` it is `value`.
    """

    title: str
    name: str
    whole: str


class ICeiling(TypedDict):
    """One ceiling as a bar. `fraction` is its length on the shared axis (0-1)."""

    label: str
    fraction: float
    text: str
    how: str
    limiting: bool


class INow(TypedDict):
    """The measured throughput on the axis of the ceilings."""

    fraction: float
    text: str


class IFinding(TypedDict):
    """One finding, all numbers as text."""

    cause: str
    title: str
    share: str
    cost: str
    evidence: list[str]
    advice: str
    where: str


class _ToggleBase(TypedDict):
    name: str
    title: str
    effect: str
    cost: str
    refusal: str
    suggested: bool
    predicted: str


class IToggle(_ToggleBase, total=False):
    """One toggle as offered. `refusal` is empty when it applies, `predicted` when nothing was."""

    code: str


class _FlameBase(TypedDict):
    key: str
    label: str
    samples: int
    names: list[str]
    details: list[str]
    kinds: list[int]
    name: list[int]
    depth: list[int]
    x0: list[float]
    x1: list[float]


class IFlame(_FlameBase, total=False):
    """Columns of one flame graph, sorted by (depth, x0); x in fractions of the whole (0-1).

    `over` has for each frame itself, without what it called, "stretch:weight ..." over the
    stretches of `ISpans`; `delta` compares A with B: share in B less share in A (-1 to 1).
    """

    over: list[str]
    delta: list[float]


class ITrack(TypedDict):
    """One row of the timeline: x in fractions of the profile, y of the row's height (0-1, up).

    `value` is the `sumUp` of the row: "mean", "median" or "peak".
    """

    key: str
    label: str
    value: str
    x: list[float]
    y: list[float]
    title: str
    sumUp: str


class ITimeline(TypedDict):
    """The timeline; `start` and `end` are the texts at the ends of its axis."""

    tracks: list[ITrack]
    start: str
    end: str


class IPhase(TypedDict):
    """One phase of the threads that fetch, all numbers as text."""

    name: str
    label: str
    perBatch: str
    share: str
    cpu: str


class IOutlier(TypedDict):
    """One outlier, all numbers as text; x0 to x1 in fractions of the profile (0-1)."""

    phase: str
    when: str
    batch: str
    time: str
    usual: str
    cause: str
    title: str
    x0: float
    x1: float


class IOutliers(TypedDict):
    """Batches that stood out: a sentence, the worst first, and a sentence a stall."""

    summary: str
    rows: list[IOutlier]
    stalls: list[str]


class ISpanPart(TypedDict):
    """One part in each stretch, in thousandths of the stretch, as text."""

    name: str
    times: str


class ISpanRow(TypedDict):
    """The parts of one bar over time; none where they are known for the whole run only."""

    parts: list[ISpanPart]


class IWaitCounts(TypedDict):
    """How many batches were waited for how long: for each pair of edges the counts over time."""

    edges: list[str]
    counts: list[str]


class ISpans(TypedDict):
    """The run in equal stretches, which a selection adds up. Numbers over time are texts."""

    marks: list[str]
    seconds: float
    rows: list[ISpanRow]
    batches: str
    samples: str
    waits: IWaitCounts


class IArmRow(TypedDict):
    """One arm of a comparison, all numbers as text."""

    name: str
    label: str
    throughput: str
    cpu: str
    firstBatch: str
    memory: str
    trials: int


class ITrialDot(TypedDict):
    """One trial on the shared axis (0-1)."""

    arm: str
    x: float


class ITick(TypedDict):
    """One mark of the shared axis (0-1)."""

    x: float
    text: str


class IGridCell(TypedDict):
    """One setting. `level` is 0-1 of the largest, -1 where nothing is known."""

    text: str
    title: str
    level: float
    timed: bool
    best: bool


class IGridRow(TypedDict):
    """Settings with something in common."""

    label: str
    cells: list[IGridCell]


class IGrid(TypedDict):
    """Settings side by side. Rows are as long as `columns`."""

    corner: str
    columns: list[str]
    rows: list[IGridRow]


class _ComparisonBase(TypedDict):
    verdict: str
    title: str
    headline: str
    lines: list[str]
    arms: list[IArmRow]
    dots: list[ITrialDot]
    ticks: list[ITick]
    code: str
    notes: list[str]


class IComparison(_ComparisonBase, total=False):
    """One comparison. `how` is how it was measured, a sentence each; `grid` is there for a search
    of workers x prefetch."""

    how: list[str]
    grid: IGrid


class IProgress(TypedDict):
    """How a running comparison stands. `fraction` is 0-1, or -1 while unknown."""

    state: str
    text: str
    fraction: float


class ILegend(TypedDict):
    """One entry of the legend of the bars."""

    name: str
    label: str


class IGap(TypedDict):
    """Something that was not measured."""

    what: str
    reason: str


class ITransform(TypedDict):
    """Runs of one transform of a dataset: how many came from the cache, and why others did not."""

    name: str
    hits: str
    rows: str
    time: str
    why: str


class IBlock(TypedDict):
    """Requests of one block device and operation, all numbers as text."""

    name: str
    requests: str
    bytes: str
    median: str
    p99: str
    p999: str
    queue: str
    who: str
    title: str


class _ReportBase(TypedDict):
    format: int
    version: str
    label: str
    headline: str
    detail: str
    separated: bool
    wouldSeparate: str
    variable: str
    figures: list[IFigure]
    bars: list[IBar]
    legend: list[ILegend]
    ceilings: list[ICeiling]
    ceilingNow: INow | None
    findings: list[IFinding]
    toggles: list[IToggle]
    timeline: ITimeline
    flames: list[IFlame]
    flameSource: str
    comparisons: list[IComparison]
    cost: str
    notMeasured: list[IGap]
    ended: str
    tier: str
    cores: str
    phases: list[IPhase]
    outliers: IOutliers


class IReport(_ReportBase, total=False):
    """The whole report. `reportId` is how the page asks the kernel for this report's channel,
    `transforms` is there where any ran, `block` where block devices were traced, `spans` where
    anything was iterated, `wholeCell` where the recorded cell itself can be run in trials, and
    `fullEvidence` where `tier` tells of nothing that is missing."""

    reportId: str
    transforms: list[ITransform]
    block: list[IBlock]
    spans: ISpans
    wholeCell: bool
    fullEvidence: bool


Bundle = dict[str, Any]
