"""What all ceilings are made with: the steady part of a loop, and a rate with its interval."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.spread import Z95, block_ratio_error
from jupyter_ioscope.diagnosis.throughput import ENOUGH, warm_up
from jupyter_ioscope.model.diagnosis import Ceiling
from jupyter_ioscope.model.readings import ThreadReadings
from jupyter_ioscope.model.records import Batch, Fetch

# One standard error, relative, of a mean about whose spread nothing is known.
UNKNOWN_RELATIVE = 0.25


def ceiling(
    facts: Facts, resource: str, label: str, per_batch_s: float, relative: float | None, how: str
) -> Ceiling | None:
    """A ceiling of one batch every `per_batch_s`; `relative` is its standard error over it.

    The interval is that of the time a batch takes (95 %, normal), turned into rates.
    """
    if per_batch_s <= 0:
        return None
    rate = facts.full_batch / per_batch_s
    half = Z95 * (UNKNOWN_RELATIVE if relative is None else relative)
    return Ceiling(resource, label, rate, rate / (1 + half), rate / max(0.05, 1 - half), how)


def as_full_batches(facts: Facts, count: int) -> float:
    """`count` batches, some of them the short last ones, as that many full ones; at least 1."""
    return max(1.0, count * facts.samples_per_batch / facts.full_batch)


def relative_error(values: Sequence[float]) -> float | None:
    """Standard error of the mean over the mean, from blocks of neighbouring values."""
    error = block_ratio_error(values, [1.0] * len(values))
    whole = fmean(values) if values else 0.0
    return error / whole if error is not None and whole else None


def whole_epochs(facts: Facts) -> bool:
    """Whether epochs are too short to have a steady part: throughput then counts their start."""
    counted: dict[int, int] = {}
    for row in facts.batches:
        counted[row.epoch] = counted.get(row.epoch, 0) + 1
    return all(count < warm_up(facts) + ENOUGH for count in counted.values())


def steady_batches(facts: Facts) -> list[Batch]:
    """Batches after the warm-up of their epoch: those whose rate is called the throughput. All of
    them where epochs are too short for that; never the short one at the end of an epoch."""
    cut = facts.cut_batches
    skip = 0 if whole_epochs(facts) else warm_up(facts)
    seen: dict[int, int] = {}
    kept = []
    for row in facts.batches:
        seen[row.epoch] = seen.get(row.epoch, 0) + 1
        if seen[row.epoch] > skip and row.batch not in cut:
            kept.append(row)
    return kept


def steady_fetches(facts: Facts) -> list[Fetch]:
    """The fetches that made the steady batches.

    Raises:
        NotMeasuredError: no fetch was recorded.
    """
    made = [facts.made[row.batch] for row in steady_batches(facts) if row.batch in facts.made]
    return made or list(facts.fetches)


def cpu_beside_s(facts: Facts, rows: Iterable[ThreadReadings]) -> float:
    """CPU seconds that these threads use for a batch, beside those that make and take it.

    Only what they ran in the loop counts, as far as they were seen there: threads of a library may
    have worked for seconds before it. Of epochs with a steady part, only that part does.
    """
    loop = facts.loop
    ran_ns = 0.0
    for row in rows:
        seen_ns = max(1, row.last_ns - row.first_ns)
        within_ns = min(row.last_ns, loop.end_ns) - max(row.first_ns, loop.start_ns)
        ran_ns += row.run_ns * min(1.0, max(0, within_ns) / seen_ns)
    if whole_epochs(facts):
        return ran_ns / as_full_batches(facts, len(facts.profile.batches)) / 1e9
    each_ns = fmean(row.wait_ns + row.step_ns for row in steady_batches(facts))
    return ran_ns / loop.wall_ns * each_ns / 1e9


def many(count: float, one: str, several: str = "") -> str:
    """`2 workers`, `1 core`, `1.5 cores`."""
    return f"{count:g} {one if count == 1 else several or one + 's'}"
