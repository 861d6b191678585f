"""The report as the page gets it: `IReport` of labextension/src/payload.ts.

Every number is turned into its text here; the page draws and computes nothing. Texts are plain,
cleaned and bounded in length, lists are bounded too, so that hostile or huge profiles stay small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jupyter_ioscope.model.comparison import Offer
from jupyter_ioscope.model.diagnosis import Diagnosis, Finding
from jupyter_ioscope.model.profile import Cost, Gap, Profile
from jupyter_ioscope.model.readings import Stacks
from jupyter_ioscope.units import percent, seconds, significant
from jupyter_ioscope.views.bars import ceiling_bars, legend, wait_bars
from jupyter_ioscope.views.block import block_rows
from jupyter_ioscope.views.comparison import comparison_payload, progress_payload
from jupyter_ioscope.views.evidence import cores_text, phases, tier_text
from jupyter_ioscope.views.flame import Tree, columns
from jupyter_ioscope.views.flame_states import all_trees
from jupyter_ioscope.views.key_figures import key_figures
from jupyter_ioscope.views.outliers import outliers
from jupyter_ioscope.views.predictions import prediction_text
from jupyter_ioscope.views.results import Result, payloads_of
from jupyter_ioscope.views.shapes import FORMAT, IFinding, IFlame, IGap, IReport, IToggle
from jupyter_ioscope.views.spans import spans
from jupyter_ioscope.views.timeline import POINTS, timeline
from jupyter_ioscope.views.transforms import transform_rows
from jupyter_ioscope.views.words import clean, clean_lines

__all__ = ["Size", "comparison_payload", "flames", "progress_payload", "report_payload"]

_SHORT_S = 1.0
_SHOWN = 5  # toggles that text and tables show whole; the others by name
_FINDINGS, _EVIDENCE, _TOGGLES, _GAPS = 12, 8, 48, 16

_NO_SPANS = 2  # points of a track: text and tables ask for so few, and draw no selection

# Of the flame graphs, by Tree.key.
_WEIGHTS = {"workers": 4, "consumer": 2, "states-workers": 3, "waits-workers": 2}


@dataclass(frozen=True)
class Size:
    """How much is drawn: frames of all flame graphs together, points of one track."""

    frames: int = 900
    points: int = POINTS


def report_payload(
    profile: Profile,
    diagnosis: Diagnosis,
    offers: Sequence[Offer] = (),
    comparisons: Sequence[Result] = (),
    variable: str = "_ioscope",
    report_id: str | None = None,
    *,
    size: Size | None = None,
    grown: Sequence[Tree] | None = None,
) -> IReport:
    """Everything the report shows, as plain JSON values (no NaN, no bytes).

    `variable` is the name under which the user finds the profile, `report_id` how the page asks
    for this report's channel. `grown` are the trees of `flame.trees`, where they exist already.
    """
    size = size or Size()
    bars = wait_bars(diagnosis.waits)
    ceilings, now = ceiling_bars(diagnosis.ceilings, diagnosis.throughput)
    report = IReport(
        format=FORMAT,
        version=clean(profile.machine.ioscope, 40),
        label=clean(profile.label, 80),
        headline=clean(diagnosis.headline, 400),
        detail=clean(diagnosis.detail, 800),
        separated=diagnosis.separated,
        wouldSeparate=clean(diagnosis.would_separate, 400),
        variable=clean(variable, 60),
        figures=key_figures(profile, diagnosis),
        bars=bars,
        legend=legend(bars),
        ceilings=ceilings,
        ceilingNow=now,
        findings=[_finding(finding) for finding in diagnosis.findings[:_FINDINGS]],
        toggles=most_useful_first([_toggle(offer) for offer in offers])[:_TOGGLES],
        timeline=timeline(profile, size.points),
        flames=flames(all_trees(profile) if grown is None else grown, size.frames),
        flameSource=_flame_source(profile.stacks),
        comparisons=payloads_of(comparisons),
        cost=cost_text(profile.cost, profile.wall_s),
        notMeasured=gaps(profile, diagnosis),
        ended=ended_text(profile),
        tier=tier_text(diagnosis.tier),
        cores=cores_text(diagnosis.demand, profile.wall_s),
        phases=phases(profile, diagnosis),
        outliers=outliers(profile, diagnosis),
    )
    if diagnosis.tier.title == "full":
        report["fullEvidence"] = True
    if profile.transforms:
        report["transforms"] = transform_rows(profile.transforms)
    if traced := block_rows(profile.block):
        report["block"] = traced
    if size.points > _NO_SPANS and (over_time := spans(profile, diagnosis.waits)):
        report["spans"] = over_time
    if offers and profile.cell is not None and profile.cell.source.strip():
        report["wholeCell"] = True
    if report_id is not None:
        report["reportId"] = report_id
    return report


def flames(grown: Sequence[Tree], frames: int) -> list[IFlame]:
    """The flame graphs with at most `frames` frames in all: most for the workers merged, then the
    consumer; one worker alone usually looks like the others."""
    weights = [_WEIGHTS.get(tree.key, 1) for tree in grown]
    shares = [frames * weight // sum(weights) for weight in weights]
    return [columns(tree, max(1, share)) for tree, share in zip(grown, shares, strict=True)]


def _finding(finding: Finding) -> IFinding:
    return IFinding(
        cause=clean(finding.cause, 60),
        title=clean(finding.title, 200),
        share=_share(finding),
        cost=seconds(finding.cost_s),
        evidence=[clean(line) for line in finding.evidence[:_EVIDENCE]],
        advice=clean(finding.advice, 400),
        where=clean(finding.where, 200),
    )


def most_useful_first(toggles: Sequence[IToggle]) -> list[IToggle]:
    """Suggested ones, then the others as they were offered, then those that do not apply."""
    return sorted(toggles, key=lambda one: (bool(one["refusal"]), not one["suggested"]))


def worth_showing(toggles: Sequence[IToggle]) -> tuple[list[IToggle], list[str], list[str]]:
    """(toggles to show whole, names of others that apply, a line for each reason of those that do
    not: `prefetch, persistent_workers: num_workers is 0`)."""
    apply = [one for one in most_useful_first(toggles) if not one["refusal"]]
    told = sum(1 for one in apply if one["suggested"])
    shown = max(_SHOWN, min(told, 2 * _SHOWN))
    reasons: dict[str, list[str]] = {}
    for one in toggles:
        if one["refusal"]:
            reasons.setdefault(one["refusal"], []).append(one["name"])
    lines = [f"{', '.join(names)}: {reason}" for reason, names in reasons.items()]
    return apply[:shown], [one["name"] for one in apply[shown:]], lines


def _share(finding: Finding) -> str:
    """`68 % (64 – 72 %)`; the interval is left out where both ends read the same."""
    decimals = 1 if finding.high < 0.0995 else 0
    low, high = percent(finding.low, decimals), percent(finding.high, decimals)
    interval = f" ({low.rstrip('%').rstrip()} – {high})" if low != high else ""
    return percent(finding.share) + interval


def _toggle(offer: Offer) -> IToggle:
    return IToggle(
        name=offer.name,  # goes back to the kernel as it is; the page shows the title
        title=clean(offer.title, 100),
        # of one that does not apply the reason is all that is shown
        effect="" if offer.refusal else clean(offer.effect),
        cost="" if offer.refusal else clean(offer.cost),
        refusal=clean(offer.refusal),
        suggested=offer.suggested,
        predicted=prediction_text(offer.predicted),
        code="" if offer.refusal else clean_lines(offer.code, 1000),
    )


def _flame_source(stacks: Stacks | None) -> str:
    if stacks is None or not stacks.samples():
        return ""
    waiting = "waiting included" if stacks.blocked_too else "running threads only"
    rate = f"{significant(stacks.rate_hz)} samples a second and thread"
    return f"{clean(stacks.source, 40)}, {rate}, {waiting}; all time"


def cost_text(cost: Cost, wall_s: float) -> str:
    """What profiling used, as shares of one core over the profile, largest first."""
    used = (
        ("stack sampler", cost.stacks_cpu_s),
        ("state sampler", cost.sampler_cpu_s),
        ("records", cost.records_s),
    )
    named = sorted((item for item in used if item[1] > 0), key=lambda item: -item[1])
    if not named or wall_s <= 0:
        return "What profiling itself used was not measured."
    if wall_s < _SHORT_S:  # shares of a moment say nothing: starting the helper is most of it
        parts = ", ".join(f"{name} {seconds(value)}" for name, value in named)
        return f"Profiling itself used CPU time: {parts}."
    total = percent(sum(value for _, value in named) / wall_s)
    parts = ", ".join(f"{name} {_small(value / wall_s)}" for name, value in named)
    return f"Profiling itself used {total} of one core: {parts}."


def _small(fraction: float) -> str:
    return percent(fraction) if fraction >= 0.0005 else "below 0.1\u00a0%"


def gaps(profile: Profile, diagnosis: Diagnosis) -> list[IGap]:
    """What was not measured, and for each reason which rules could not decide, each once."""
    listed = [*diagnosis.not_measured, *profile.not_measured]
    undecided: dict[str, list[str]] = {}
    for rule, reason in diagnosis.unknown:
        undecided.setdefault(reason, []).append(f"“{rule.replace('_', ' ')}”")
    for reason, rules in undecided.items():
        causes = "cause" if len(rules) == 1 else "causes"
        listed.append(Gap(f"{causes} {', '.join(rules)}", reason))
    return _bounded([IGap(what=clean(what, 200), reason=clean(reason)) for what, reason in listed])


def _bounded(listed: Sequence[IGap]) -> list[IGap]:
    once = list(_once(listed))
    if len(once) > _GAPS:
        more = len(once) - _GAPS + 1
        once[_GAPS - 1 :] = [IGap(what=f"{more} more", reason="listed in .diagnosis.not_measured")]
    return once


def _once(listed: Sequence[IGap]) -> Iterator[IGap]:
    seen: set[tuple[str, str]] = set()
    for gap in listed:
        if (key := (gap["what"], gap["reason"])) not in seen:
            seen.add(key)
            yield gap


def ended_text(profile: Profile) -> str:
    """How the cell ended, where it did not simply finish."""
    if profile.ended_by:
        name, after = clean(profile.ended_by, 120), seconds(profile.wall_s)
        return f"The cell ended with {name} after {after}; the report covers what ran until then."
    if profile.stopped_early:
        return (
            f"Recording stopped after {seconds(profile.wall_s)} and {len(profile.batches):,} "
            "batches (--seconds and --batches set the end); the cell ran on."
        )
    return ""
