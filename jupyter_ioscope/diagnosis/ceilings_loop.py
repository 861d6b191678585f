"""Ceilings of the loop's own process: the step, taking over batches, starting epochs."""

from __future__ import annotations

from statistics import fmean

from jupyter_ioscope.diagnosis.ceilings_row import (
    as_full_batches,
    ceiling,
    relative_error,
    steady_batches,
    steady_fetches,
    whole_epochs,
)
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Ceiling
from jupyter_ioscope.units import bytes_text, seconds

# The sum of what one thread does is a ceiling of its own where it is longer than its largest part
# by more than this.
_ADDS = 0.05


def consumer(facts: Facts) -> Ceiling | None:
    """The step with the batch, alone."""
    steps = [row.step_ns / 1e9 for row in steady_batches(facts)]
    if not steps:
        return None
    how = f"One step takes {seconds(fmean(steps))}; nothing else would have to be waited for."
    return ceiling(facts, "consumer", "your step", fmean(steps), relative_error(steps), how)


def process(facts: Facts) -> Ceiling | None:
    """All that the loop's thread does for a batch, one after the other: nothing of it overlaps."""
    batches = steady_batches(facts)
    steps = [row.step_ns / 1e9 for row in batches]
    if facts.alone:
        before, what = [row.wait_ns / 1e9 for row in batches], "fetching"
    else:
        before, what = _taken_over_s(facts), "taking batches over"
    if not steps or not before:
        return None
    whole = fmean(steps) + fmean(before)
    if whole < (1 + _ADDS) * max(fmean(steps), fmean(before)):
        return None
    doing = "fetching a batch" if facts.alone else "taking a finished batch over from its worker"
    how = (
        f"One thread does both: {doing} takes {seconds(fmean(before))}, your step "
        f"{seconds(fmean(steps))}."
    )
    error = max(relative_error(steps) or 0.0, relative_error(before) or 0.0) or None
    return ceiling(facts, "process", f"{what} + your step", whole, error, how)


def _taken_over_s(facts: Facts) -> list[float]:
    """How long each steady batch, fetched already, kept the loop inside `next()`, in seconds. At
    least the CPU used there: it unpacks. Where the loop had to wait for a core to do so, that
    counts: it is what taking over costs on this machine today."""
    found = []
    for row in steady_batches(facts):
        fetch = facts.made.get(row.batch)
        since = row.wait_end_ns if fetch is None else max(fetch.end_ns, row.wait_start_ns)
        found.append(max(row.wait_end_ns - since, min(row.wait_cpu_ns, row.wait_ns)) / 1e9)
    return found


def hand_over(facts: Facts) -> Ceiling | None:
    """What the main process itself does for every batch, whoever fetched it: objects and bytes are
    unpacked by its own thread, or by the one that pins memory, one batch after the other."""
    costs = [] if facts.alone else _taken_over_s(facts)
    if not costs:
        return None
    per_batch, who, error = fmean(costs), "the main process", relative_error(costs)
    pins = [row for row in facts.waits.others if row.who == "pin_memory"]
    pin_ns = sum(row.wall_ns - row.part_ns("idle") - row.part_ns("rest") for row in pins)
    pin_s = pin_ns / as_full_batches(facts, len(facts.profile.batches)) / 1e9
    if pin_s > per_batch:
        per_batch, who, error = pin_s, "the thread that pins memory", None
    how = f"Taking over a batch{_size(facts)} costs {who} {seconds(per_batch)}."
    return ceiling(facts, "hand_over", "hand-over", per_batch, error, how)


def _size(facts: Facts) -> str:
    try:
        fetches = steady_fetches(facts)
    except NotMeasuredError:
        return ""
    tensors = fmean(row.tensors for row in fetches)
    size = fmean(row.batch_bytes for row in fetches)
    if tensors <= 0:
        return ""
    many = "object" if round(tensors) == 1 else "objects"
    return f" ({tensors:,.0f} {many}, {bytes_text(size)})"


def feeder(facts: Facts) -> Ceiling | None:
    """What the workers' feeder threads do for a batch. The time they are blocked in a full pipe is
    the reader's, not theirs."""
    rows = [row for row in facts.waits.others if row.who == "feeder"]
    fetched = len([row for row in facts.profile.fetches if row.worker >= 0])
    if facts.alone or not rows or not fetched:
        return None
    quiet = ("idle", "hand_over", "rest", "start_up")
    busy_ns = sum(row.wall_ns - sum(map(row.part_ns, quiet)) for row in rows)
    per_batch = busy_ns / as_full_batches(facts, fetched) / 1e9
    workers = max(1, facts.workers)
    how = f"Handing on a batch takes a worker's feeder thread {seconds(per_batch)}."
    return ceiling(facts, "feeder", "feeder threads", per_batch / workers, None, how)


def start_up(facts: Facts) -> Ceiling | None:
    """Starting epochs, where they are so short that their start is a part of the throughput: until
    the first batch nothing else goes on, then the rest comes at the rate of those who fetch."""
    if len(facts.profile.epochs) < 2 or not whole_epochs(facts):
        return None
    fetching = fmean(row.fetch_ns for row in facts.fetches) / max(1, facts.workers) / 1e9
    begins = {row.epoch: row.iter_start_ns for row in facts.profile.epochs}
    firsts: dict[int, int] = {}
    for row in facts.batches:
        firsts.setdefault(row.epoch, row.wait_end_ns)
    starts = [
        max(0.0, (firsts[number] - begins[number]) / 1e9 - fetching)
        for number in firsts
        if number in begins
    ]
    per_epoch, batches = fmean(starts), len(facts.batches) / len(firsts)
    if per_epoch < _ADDS * batches * fetching:
        return None
    per_batch = per_epoch / batches + fetching
    how = (
        f"An epoch takes {seconds(per_epoch)} to start, then one batch comes every "
        f"{seconds(fetching)}; it has {batches:,.0f}."
    )
    return ceiling(facts, "start_up", "epoch starts", per_batch, relative_error(starts), how)
