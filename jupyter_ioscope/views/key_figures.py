"""The numbers in the head of the report: throughput, first batch, memory, bytes read, GPU."""

from __future__ import annotations

import math
from collections.abc import Iterator

from jupyter_ioscope.model.diagnosis import Diagnosis, Throughput
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.units import bytes_text, percent, plus_minus, rate, seconds, significant
from jupyter_ioscope.views.quantities import find
from jupyter_ioscope.views.shapes import IFigure
from jupyter_ioscope.views.words import clean

NOT_KNOWN = "–"
_VAGUE = 0.5  # a throughput whose error is a larger part of it is not called steady
_TRICKLE_BYTES_PER_S = 10_000  # what any machine receives beside a loader that reads elsewhere
_MEMORY, _DISK, _GPU = "peak memory", "read from disk", "GPU busy"


def key_figures(profile: Profile, diagnosis: Diagnosis) -> list[IFigure]:
    """Value, what it is, and a longer text; a missing number shows a dash and its reason."""
    return [
        *_throughput(diagnosis.throughput),
        _memory(profile),
        *_bytes_read(profile),
        *_gpu(profile),
        _recorded(profile),
    ]


def _throughput(throughput: Throughput | None) -> Iterator[IFigure]:
    if throughput is None:
        return
    unit = "samples" if throughput.samples > 0 else "batches"
    value = throughput.samples_per_s if throughput.samples > 0 else throughput.batches_per_s
    doubt = throughput.error if throughput.samples > 0 else 0.0
    known = math.isfinite(doubt) and doubt > 1e-6 * value  # less is what adding floats leaves
    word = "too few batches" if known and doubt > _VAGUE * value else "steady"
    yield IFigure(
        value=rate(value, unit),
        label=f"{word}, ± {significant(doubt, 2)}" if known else word,
        name="steady throughput",
        whole=f"{plus_minus(value, doubt)} {unit}/s" if known else rate(value, unit),
        title=f"{plus_minus(value, doubt)} {unit}/s after start-up, one standard error; "
        f"{significant(throughput.batches_per_s)} batches/s",
    )
    if math.isfinite(throughput.first_batch_s):
        yield IFigure(
            value=seconds(throughput.first_batch_s),
            label="to the first batch",
            name="first batch",
            title="from iter(loader) to the first batch",
        )


def _memory(profile: Profile) -> IFigure:
    found = find(profile, "memory")
    if not found:
        return _missing(profile, ("memory", "counters"), _MEMORY)
    peak = bytes_text(max(series.peak() for series in found))
    shared = "once" if "pss" in found[0].name else "in each of them"
    return IFigure(
        value=peak,
        label=f"{_MEMORY}, all processes",
        name=_MEMORY,
        title=f"{peak} at the highest reading; memory shared by processes counts {shared}",
    )


def _bytes_read(profile: Profile) -> Iterator[IFigure]:
    found = find(profile, "disk_read")
    disk = sum(max(0.0, series.total()) for series in found)
    if found:
        per_s = disk / profile.wall_s if profile.wall_ns else 0.0
        whose = ", all programs" if found[0].scope == "machine" else ""
        yield IFigure(
            value=bytes_text(disk),
            label=f"{_DISK}{whose}",
            name=_DISK,
            whole=f"{bytes_text(disk)}{whose}",
            title=f"{bytes_text(per_s)}/s on average; what came from the page cache is not counted",
        )
    else:
        yield _missing(profile, ("bytes the tree read", "counters"), _DISK)
    network = sum(max(0.0, series.total()) for series in find(profile, "network"))
    # only then it says something about the loader; a little is always on its way
    if network > disk and network > _TRICKLE_BYTES_PER_S * profile.wall_s:
        yield IFigure(
            value=bytes_text(network),
            label="received from the network, all programs",
            name="received from the network",
            whole=f"{bytes_text(network)}, all programs",
            title="by this machine, as far as this process can see",
        )


def _gpu(profile: Profile) -> Iterator[IFigure]:
    busy = find(profile, "gpu")
    if busy:
        mean = sum(series.mean() for series in busy) / len(busy)
        which = f"{_GPU}, mean of {len(busy)}" if len(busy) > 1 else _GPU
        yield IFigure(
            value=percent(mean),
            label=which,
            name=_GPU,
            title=clean(", ".join(profile.machine.gpus), 200) or "mean over the profile",
        )
    elif profile.machine.gpus:
        yield _missing(profile, ("gpu", "counters"), _GPU)


def _recorded(profile: Profile) -> IFigure:
    batches = len(profile.batches)
    return IFigure(
        value=f"{batches:,}",
        label=f"batch{'es' * (batches != 1)} in {seconds(profile.wall_s)}",
        name="batches recorded",
        whole=f"{batches:,} in {seconds(profile.wall_s)}",
        title=f"recorded: {batches:,} batches in {seconds(profile.wall_s, 3)}",
    )


def _missing(profile: Profile, words: tuple[str, ...], label: str) -> IFigure:
    reason = next(
        (
            clean(gap.reason, 200)
            for gap in profile.not_measured
            if any(word in gap.what.lower() for word in words)
        ),
        "this profile holds no such readings",
    )
    return IFigure(
        value=NOT_KNOWN,
        label=f"{label}: not measured",
        title=reason,
        name=label,
        whole="not measured",
    )
