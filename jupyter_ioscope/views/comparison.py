"""A comparison as the page shows it: one sentence, its doubt, the arms, every trial as a dot."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median

from jupyter_ioscope.model.comparison import VERDICTS, Arm, Comparison, Trial
from jupyter_ioscope.trials.statistics import MIN_PAIRS
from jupyter_ioscope.units import bytes_text, percent, plus_minus, seconds, significant
from jupyter_ioscope.views.predictions import missed_text
from jupyter_ioscope.views.shapes import IArmRow, IComparison, IProgress, ITick, ITrialDot
from jupyter_ioscope.views.words import clean, clean_lines

PROGRESS_STATES = ("idle", "running", "cancelling", "done", "cancelled", "failed")
_DOTS = 40  # an arm; more would lie on top of each other
_NOTES = 8


def comparison_payload(comparison: Comparison) -> IComparison:
    """`IComparison` of payload.ts. All numbers are text or positions on the shared axis (0-1)."""
    top = _axis_top(comparison)
    return IComparison(
        verdict=comparison.verdict if comparison.verdict in VERDICTS else "undecided",
        title=f"A/B: {clean(comparison.arms[1].label, 80)}",
        headline=headline(comparison),
        lines=list(_lines(comparison)),
        how=list(_how(comparison)),
        arms=[_arm(arm) for arm in comparison.arms],
        dots=[dot for name in ("A", "B") for dot in _dots(comparison.trials, name, top)],
        ticks=[ITick(x=round(value / top, 4), text=_tick(value)) for value in _ticks(top)],
        code=clean_lines(comparison.code),
        notes=[clean(note) for note in comparison.notes[:_NOTES]],
    )


def progress_payload(state: str, text: str, fraction: float = -1.0) -> IProgress:
    """`IProgress` of payload.ts. `fraction` is 0-1; anything else means unknown."""
    known = math.isfinite(fraction) and 0 <= fraction <= 1
    return IProgress(
        state=state if state in PROGRESS_STATES else "running",
        text=clean(text, 200),
        fraction=round(fraction, 3) if known else -1.0,
    )


def headline(comparison: Comparison) -> str:
    """The verdict in a few words; without a usable ratio it says so."""
    ratio = comparison.ratio
    if comparison.pairs == 0 or not math.isfinite(ratio) or ratio <= 0:
        return "Cancelled before the first pair" if comparison.cancelled else "No pair was measured"
    if comparison.verdict == "faster":
        return f"{significant(ratio)} × faster"
    if comparison.verdict == "slower":
        return f"{significant(1 / ratio)} × slower"
    if comparison.verdict == "same":
        return f"The same within {percent(_half_width(comparison))}"
    if comparison.same_data.verdict == "different":
        return "No winner: the arms delivered different data"
    if comparison.pairs < MIN_PAIRS:
        made = f"{comparison.pairs} pair{'s' * (comparison.pairs != 1)}"
        return f"Undecided: the time was enough for {made}, and {MIN_PAIRS} are the least"
    if not 0 < comparison.smallest_visible < math.inf:
        return "Undecided"
    return f"Undecided: only more than {percent(comparison.smallest_visible)} would have shown"


def _half_width(comparison: Comparison) -> float:
    return max(abs(comparison.ratio_high - 1), abs(1 - comparison.ratio_low))


def _lines(comparison: Comparison) -> Iterator[str]:
    if comparison.cancelled:
        yield "Cancelled: the numbers are those of the pairs that were finished."
    if comparison.pairs and math.isfinite(comparison.ratio):
        yield _interval(comparison)
        if cpu := _cpu(comparison):
            yield cpu
        ends = comparison.ratio_low, comparison.ratio_high
        if missed := missed_text(comparison.predicted, comparison.ratio, *ends):
            yield missed
    if comparison.same_data.text:
        yield clean(comparison.same_data.text)
    if more := _more_time(comparison):
        yield more


def _more_time(comparison: Comparison) -> str:
    """What would decide a comparison that ran out of time; from how long its own pairs took."""
    if comparison.cancelled or not 0 < comparison.pairs < MIN_PAIRS:
        return ""
    needed_s = comparison.seconds / comparison.pairs * MIN_PAIRS
    budget_s = 60 * math.ceil(needed_s / 60)
    takes = f"{MIN_PAIRS} pairs take about {seconds(needed_s)} here"
    return f"{takes}: compare with budget_s={budget_s}."


def _how(comparison: Comparison) -> Iterator[str]:
    """What somebody asks who doubts the result; nobody needs it to know the result."""
    yield _circumstances(comparison)
    for text in (comparison.cache_text, comparison.isolation_text):
        if text:
            yield clean(text)


def _interval(comparison: Comparison) -> str:
    if comparison.ratio_low <= 0 or not math.isfinite(comparison.ratio_high):
        measured = significant(comparison.ratio)
        return f"Measured × {measured}, in too few pairs to say how sure that is"
    low, high = significant(comparison.ratio_low), significant(comparison.ratio_high)
    return f"{percent(comparison.confidence)} sure: × {low} to {high}"


def _cpu(comparison: Comparison) -> str:
    if not math.isfinite(comparison.cpu_ratio) or comparison.cpu_ratio <= 0:
        return ""
    low, high = comparison.cpu_ratio_low, comparison.cpu_ratio_high
    if low <= 0 or not math.isfinite(high):
        return ""  # too few pairs for any interval
    if low <= 1 <= high:
        return "CPU per sample: no difference seen" + (
            f" (× {significant(low)} – {significant(high)})"
        )
    less = comparison.cpu_ratio > 1
    factor = comparison.cpu_ratio if less else 1 / comparison.cpu_ratio
    ends = (low, high) if less else (1 / high, 1 / low)
    between = f"{significant(ends[0])} – {significant(ends[1])}"
    return f"CPU per sample: × {significant(factor)} {'less' if less else 'more'} ({between})"


def _circumstances(comparison: Comparison) -> str:
    trials = comparison.trials
    parts = [f"{comparison.pairs} pair{'s' * (comparison.pairs != 1)}"]
    if trials:
        parts[0] += f" of {seconds(median([trial.steady_s for trial in trials]))}"
        parts.append("random order")
    parts.append(f"{clean(comparison.cache, 20)} cache")
    if trials:
        other = median([trial.external_cpu for trial in trials])
        parts.append(f"other programs used {significant(other, 2)} cores")
    parts.append(f"run in a {clean(comparison.isolation, 40)}".replace("in a in the", "in the"))
    parts.append(f"{seconds(comparison.seconds)} in all")
    return f"{', '.join(parts)}."


def _arm(arm: Arm) -> IArmRow:
    doubt = (arm.samples_per_s_high - arm.samples_per_s_low) / 2
    return IArmRow(
        name=clean(arm.name, 4),
        label=clean(arm.label, 80),
        throughput=plus_minus(arm.samples_per_s, doubt),
        cpu=f"{significant(arm.cpu_ms_per_sample)} ms",
        firstBatch=seconds(arm.first_batch_s),
        memory=bytes_text(arm.peak_memory_bytes),
        trials=arm.trials,
    )


def _dots(trials: Sequence[Trial], arm: str, top: float) -> Iterator[ITrialDot]:
    values = [trial.samples_per_s for trial in trials if trial.arm == arm]
    for value in values[:_DOTS]:
        if math.isfinite(value):
            yield ITrialDot(arm=arm, x=round(min(1.0, max(0.0, value / top)), 4))


def _axis_top(comparison: Comparison) -> float:
    values = [trial.samples_per_s for trial in comparison.trials]
    values.extend(arm.samples_per_s_high for arm in comparison.arms)
    values.extend(arm.samples_per_s for arm in comparison.arms)
    highest = max((v for v in values if math.isfinite(v) and v > 0), default=1.0)
    step = _step(highest)
    return step * math.ceil(highest / step * 1.0001)


def _ticks(top: float) -> list[float]:
    step = _step(top)
    return [step * i for i in range(int(top / step + 0.5) + 1)]


def _tick(value: float) -> str:
    """Ticks are round: what follows the last digit that is no zero says nothing."""
    text = significant(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _step(top: float) -> float:
    """A round distance of ticks (1, 2 or 5 times a power of ten) that gives 3 to 6 of them."""
    size = float(10 ** math.floor(math.log10(top)))
    return next(size * factor for factor in (0.2, 0.5, 1.0, 2.0) if top / (size * factor) <= 5.5)
