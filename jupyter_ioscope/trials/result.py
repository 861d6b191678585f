"""Turns finished trials into a Comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jupyter_ioscope.capture.cores import affinity_cores
from jupyter_ioscope.model.comparison import Arm, Comparison, SameData, Trial
from jupyter_ioscope.trials import statistics
from jupyter_ioscope.trials.pairs import Pairs
from jupyter_ioscope.trials.spec import settings_of
from jupyter_ioscope.units import percent, ratio, ratio_range, significant

_BUSY_FRACTION = 0.25  # of the machine, used by others: then say so
_HARDLY_COLDER = 0.9  # of the speed with a warm cache


_UNCHECKED = SameData("not_checked", "The arms' samples were not compared.", 0)


@dataclass
class Draft:
    """What is known of a comparison while it runs."""

    pairs: Pairs
    labels: tuple[str, str]
    toggles: tuple[str, ...]
    code: str = ""
    same_data: SameData = _UNCHECKED
    notes: tuple[str, ...] = ()


def comparison(
    draft: Draft, isolation: str, isolation_text: str, seconds: float, cancelled: bool
) -> Comparison:
    """The finished value. A winner is declared only over the same samples, and never when the
    comparison was cancelled."""
    pairs = draft.pairs
    found, cpu = pairs.throughput(), pairs.cpu()
    measured = statistics.verdict(found)
    differs = draft.same_data.verdict == "different"
    verdict = "undecided" if cancelled or differs else measured
    notes = list(draft.notes)
    if differs and measured != "undecided":
        notes.insert(
            0,
            f"B's throughput measured {ratio_range(found.low, found.high)}, but no "
            "winner is declared because the arms deliver different samples.",
        )
    notes += _circumstances(pairs.trials)
    return Comparison(
        verdict=verdict,
        ratio=found.ratio,
        ratio_low=found.low,
        ratio_high=found.high,
        confidence=1 - pairs.alpha,
        cpu_ratio=cpu.ratio,
        cpu_ratio_low=cpu.low,
        cpu_ratio_high=cpu.high,
        smallest_visible=found.smallest_visible,
        arms=(_arm("A", draft), _arm("B", draft)),
        trials=tuple(trial for trial in pairs.trials if trial.pair < pairs.complete),
        same_data=draft.same_data,
        cache="cold" if pairs.cold else "warm",
        cache_text=cache_text(pairs),
        isolation=isolation,
        isolation_text=isolation_text,
        code=draft.code if verdict == "faster" else "",
        seconds=seconds,
        notes=tuple(notes),
        cancelled=cancelled,
    )


def _arm(name: str, draft: Draft) -> Arm:
    trials = draft.pairs.of(name)
    rates = [trial.samples_per_s for trial in trials]
    bounds = statistics.geometric_interval(rates)
    second = name == "B"
    return Arm(
        name=name,
        label=draft.labels[second],
        settings=settings_of(draft.pairs.specs[second]),
        toggles=draft.toggles if second else (),
        samples_per_s=statistics.median(rates),
        samples_per_s_low=bounds.low,
        samples_per_s_high=bounds.high,
        cpu_ms_per_sample=statistics.median([t.cpu_ms_per_sample for t in trials]),
        first_batch_s=statistics.median([t.first_batch_s for t in trials]),
        peak_memory_bytes=int(statistics.median([float(t.peak_memory_bytes) for t in trials])),
        trials=len(trials),
    )


def cache_text(pairs: Pairs) -> str:
    """What was proven about the page cache, in a sentence."""
    name = "cold" if pairs.cold else "warm"
    if not pairs.files:
        return (
            f"{name}: nothing could be proven, because no file was seen being opened (in memory, "
            "over the network, by a library written in C, or trials in the kernel)"
        )
    if not pairs.cached or not pairs.cached[0].method:
        return f"{name}: nothing could be proven, because this system does not tell what is cached"
    pick = max if pairs.cold else min
    worst = pick(pairs.cached, key=lambda cached: cached.fraction)
    text = f"{worst.text()} were in the page cache before each trial, proven by {worst.method}"
    if pairs.cold:
        return f"cold: evicted before each trial; at most {text}; {_against_warm(pairs)}"
    return f"warm: at least {text}" if worst.fraction < 0.995 else f"warm: {text}"


def _against_warm(pairs: Pairs) -> str:
    """What being cold cost arm A: a file that the system evicted may be cached elsewhere."""
    cold = statistics.median([trial.samples_per_s for trial in pairs.of("A")])
    if not pairs.warm_rate > 0 or not cold > 0:
        return "a virtual disk may still be cached by its host"
    slower = cold / pairs.warm_rate
    text = f"A then ran at {ratio(slower)} of its speed with a warm cache (one run)"
    if slower > _HARDLY_COLDER:
        text += ": its reads hardly matter, or the host of a virtual disk caches them"
    return text


def _circumstances(trials: Sequence[Trial]) -> list[str]:
    notes = []
    external = statistics.median([trial.external_cpu for trial in trials])
    cores = affinity_cores()
    if math.isfinite(external) and external > _BUSY_FRACTION * cores:
        notes.append(
            f"Other programs used {significant(external, 2)} of {cores} cores meanwhile "
            f"({percent(external / cores)}): intervals are wider than on a quiet machine."
        )
    if trials and not any(trial.peak_memory_bytes for trial in trials):
        notes.append("Peak memory could not be read: it needs /proc/<pid>/smaps_rollup.")
    return notes
