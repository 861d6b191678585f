"""Orders findings by what removing them would gain, and says whether the first is certain."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from jupyter_ioscope.diagnosis.facts import NOISE_SHARE
from jupyter_ioscope.diagnosis.spread import Z95
from jupyter_ioscope.model.diagnosis import HARMS, WAITS, Finding
from jupyter_ioscope.units import seconds

# Resources of causes that act before the loop as well: a loop that is over at once does not hide
# them.
BEFORE = ("start_up", "memory")

# The cause that is not the user's.
OTHERS = "cores_taken"

# Causes that every loop has some of: work that has to be done somewhere, and waits for it. They are
# worth a word from this many seconds on, in a profile as long as it was; a fault that can be named
# (the same files opened again, say) from some hundredths on, because a real run repeats it.
_LEAST_S = {
    "decode_cpu": 0.4,
    "no_workers_cpu_bound": 0.4,
    "no_workers_latency_bound": 0.4,
    "blocked_unseen": 0.4,
    OTHERS: 0.3,
    "first_batch_setup": 0.2,
    "workers_overhead": 0.1,
}
_FAULT_S = 0.03
_WORK = ("decode_cpu", "no_workers_cpu_bound", "no_workers_latency_bound", "blocked_unseen")
_CPU_WORK = ("decode_cpu", "no_workers_cpu_bound")
_DEVICE = ("disk_latency", "disk_bandwidth")
# What is waited for, by its name, and the same wait as one that workers would overlap: two views of
# one cause, no rivals. Both stay, the name first.
_OVERLAP = "no_workers_latency_bound"
_WAITED_FOR = (*_DEVICE, "page_fault_io", "network_latency")
_UNNAMED = ("sleep", "process")
# ... and, at the lower end of their interval, from this part of the loop on.
_GENERAL_LOW = 0.1
# What other programs took is no finding of its own, where nothing else was found, below this part.
_OTHERS_ALONE = 0.5

# Standing in line. What is waited for is counted twice: as the line and as the work at its head.
# A line half as long as the work is the cause that a user can do something about: without it the
# work would not be waited for.
_LINES = ("gil", "lock", "run_queue")
_LINE_AS_LONG = 0.5

# Other programs may end by themselves, and the user's own cause stays: theirs comes first only
# where that one is less than this part of the loop, and theirs costs so many times as much.
_OTHERS_FIRST, _OWN_PART = 4.0, 0.1

# A cause that says more exactly what a general one is made of stands for it from this part on.
_REFINED = 0.5

# The step as a whole. What it is made of and can be left out comes before it, from this part of the
# loop on: "nothing to fix" is not said where there is something.
STEP = "not_loader_bound"
_PART_OF_STEP = 0.1

# The user's own work with a batch is what the loop is for: it is no fault. A fault with a name of
# its own comes before it from this part of the loop on; work that every loop has some of, where it
# costs a third as much as the step.
_FAULT_PART = 0.15
_STEP_FIRST = 3.0

# A profile more than this many times as long is no advice that anybody follows.
_LONGEST = 30.0


def ranked(findings: Iterable[Finding], own_cpu: float = 1.0) -> tuple[Finding, ...]:
    """Largest cost first, noise left out, and a general cause left out where a more exact one
    names at least half of it. A line (GIL, lock, run queue) at least half as long as
    the first cause comes before it.

    Noise: a share below 5 % of the loop, an interval that reaches 0, a few hundredths of a second;
    of causes that every loop has some of, tenths of a second.

    `own_cpu` is the part of what CPU work in fetches costs that is its own: the rest is time in
    line behind other programs, which a wait does not have and which other programs may end. A wait
    that is longer than the work itself comes before it.

    A cause that does harm beside taking time (see `HARMS`) comes before all others, whatever its
    share: a run that hangs, wrong samples, memory that runs out. Rules set it for great harm only.
    """
    rows = list(findings)
    harmful = [row for row in rows if row.harm]
    harmful.sort(key=lambda row: (HARMS.index(row.harm), -row.cost_s, row.cause))
    overlap = _overlap(rows)
    kept = [row for row in rows if not _noise(row)]
    if overlap is not None and overlap not in kept:
        kept = [row for row in kept if row.cause not in _WAITED_FOR]
    kept = [row for row in kept if not row.harm and not _said_better(row, kept)]
    kept.sort(key=lambda row: (-row.cost_s, -row.share, row.cause))
    if len(kept) > 1 and kept[0].cause == OTHERS and not _far_ahead(kept[0], kept[1]):
        kept[:2] = kept[1], kept[0]
    if kept and kept[0].resource not in (*_LINES, "consumer", "start_up"):
        lines = (row for row in kept[1:] if row.resource in _LINES and row.cause != OTHERS)
        line = next(lines, None)
        if line is not None and line.share >= _LINE_AS_LONG * kept[0].share:
            kept.remove(line)
            kept.insert(0, line)
    if len(kept) == 1 and kept[0].cause == OTHERS and kept[0].share < _OTHERS_ALONE:
        kept = []
    kept = _waits_before_line(kept, own_cpu)
    work = _WORK if overlap is None else (*_WORK, *_WAITED_FOR)
    kept = _faults_before_step(_faults_before_work(kept, work), work)
    return (*harmful, *_others_third(_name_before_overlap(kept)))


def _waits_before_line(kept: list[Finding], own_cpu: float) -> list[Finding]:
    """The largest wait, before general CPU work that only others on the cores make longer, or that
    is no longer within the error: a wait needs some CPU itself, in the kernel."""
    if not kept or kept[0].cause not in _CPU_WORK:
        return kept
    for place, row in enumerate(kept[1:], 1):
        longest_s = row.cost_s + Z95 * _error_s(row)
        if row.resource in WAITS and longest_s > own_cpu * kept[0].cost_s:
            return [row, *kept[:place], *kept[place + 1 :]] if row.share >= _FAULT_PART else kept
    return kept


def _overlap(rows: Iterable[Finding]) -> Finding | None:
    """Of a loop without workers, its waits as ones that workers would overlap. Some have no other
    name."""
    return next(
        (row for row in rows if row.cause == _OVERLAP and row.resource not in _UNNAMED), None
    )


def _others_third(kept: list[Finding]) -> list[Finding]:
    """What other programs took, behind a second cause of the loop's own that is worth a look."""
    if len(kept) > 2 and kept[1].cause == OTHERS and kept[2].share >= _FAULT_PART:
        return [kept[0], kept[2], kept[1], *kept[3:]]
    return kept


def _name_before_overlap(kept: list[Finding]) -> list[Finding]:
    """What is waited for comes right before the advice to wait for several at a time."""
    overlap = _overlap(kept)
    if overlap is None:
        return kept
    before = kept[: kept.index(overlap)]
    behind = kept[kept.index(overlap) + 1 :]
    names = [row for row in behind if row.cause in _WAITED_FOR]
    return [*before, *names, overlap, *(row for row in behind if row not in names)]


def _faults_before_work(kept: list[Finding], work: Sequence[str]) -> list[Finding]:
    """The largest fault with a name of its own, before work that every loop has some of, and before
    waits for a device that it says more exactly, where it costs a third as much."""
    if not kept:
        return kept
    general = kept[0].cause in work
    for place, row in enumerate(kept[1:], 1):
        named = row.cause not in (*work, OTHERS, STEP)
        exact = kept[0].cause in _DEVICE and kept[0].cause in row.refines
        named = named and (exact or (general and row.share >= _FAULT_PART))
        if named and row.cost_s * _STEP_FIRST >= kept[0].cost_s:
            return [row, *kept[:place], *kept[place + 1 :]]
    return kept


def _noise(row: Finding) -> bool:
    if row.share < NOISE_SHARE or 2 * row.share <= row.high:
        return True
    if row.low <= 0 and row.high >= 1:  # cut at both ends: it says nothing
        return True
    if row.cause in _LEAST_S and row.cause != OTHERS and row.low < _GENERAL_LOW:
        return True
    return row.cause != STEP and row.cost_s < _LEAST_S.get(row.cause, _FAULT_S)


def _faults_before_step(kept: list[Finding], work: Sequence[str]) -> list[Finding]:
    """The largest cause that can be fixed, before a step that does not dwarf it."""
    at = next((at for at, row in enumerate(kept) if row.cause == STEP), None)
    if at is None:
        return kept
    step = kept[at]
    for place in range(at + 1, len(kept)):
        if _before_step(kept[place], step, work):
            return [*kept[:at], kept[place], *kept[at:place], *kept[place + 1 :]]
    return kept


def _before_step(row: Finding, step: Finding, work: Sequence[str]) -> bool:
    if row.cause == OTHERS:
        return False
    if STEP in row.refines:  # a part of the step that can be left out
        return row.share >= _PART_OF_STEP
    named = row.cause not in work and row.share >= _FAULT_PART
    common = row.cost_s * _STEP_FIRST >= step.cost_s and row.share >= _PART_OF_STEP
    return named or common


def _said_better(row: Finding, others: Iterable[Finding]) -> bool:
    """Whether another finding names what at least half of this one's cost is made of."""
    return any(
        row.cause in other.refines and other.cost_s >= _REFINED * row.cost_s
        for other in others
        if other is not row
    )


def _far_ahead(first: Finding, second: Finding) -> bool:
    return first.cost_s > _OTHERS_FIRST * second.cost_s and second.share < _OWN_PART


def error_of(row: Finding) -> float:
    """One standard error of a share, from its interval."""
    return max(row.high - row.share, row.share - row.low) / Z95


def separated(findings: Sequence[Finding]) -> bool:
    """Whether the first cause is told apart from the second: their intervals do not overlap.

    The errors are added, not joined as if independent: shares of one split depend on each other,
    more of one is less of the other.
    """
    if len(findings) < 2:
        return True
    first, second = findings[0], findings[1]
    if first.harm:  # first for what it does, not for the time it takes
        return True
    if second.cause in (STEP, OTHERS) or not rivals(first, [second]):
        # A part and its whole are no rivals, nor are a fault and the loop's own purpose, or what
        # other programs took meanwhile.
        return separated((first, *findings[2:]))
    if first.cost_s < second.cost_s:  # a line that was put first: the numbers alone do not say so
        return False
    return first.cost_s - second.cost_s > Z95 * (_error_s(first) + _error_s(second))


def rivals(first: Finding, others: Sequence[Finding]) -> list[Finding]:
    """Of the other findings, those that are neither a part of the first nor the same seen from
    another side."""
    same = (_OVERLAP,) if first.cause in _WAITED_FOR else ()
    return [row for row in others if row.cause not in (*first.refines, *same)]


def margin(findings: Sequence[Finding]) -> float:
    """How far the first cause is ahead of the second, in the unit of the first one's share."""
    if not findings:
        return 0.0
    others = rivals(findings[0], findings[1:])
    second_s = others[0].cost_s if others else 0.0
    return findings[0].share - second_s / _whole_s(findings[0])


def _whole_s(row: Finding) -> float:
    """The time that a finding's share is a part of, in seconds."""
    return row.cost_s / row.share if row.cost_s > 0 and row.share > 0 else 1.0


def _error_s(row: Finding) -> float:
    return error_of(row) * _whole_s(row)


def would_separate(findings: Sequence[Finding], wall_s: float) -> str:
    """What would tell the first two causes apart; empty when they are."""
    if separated(findings):
        return ""
    first = findings[0]
    second = rivals(first, findings[1:])[0]
    if OTHERS in (first.cause, second.cause):
        return "Profile again when other programs leave the cores alone."
    if "run_queue" in (first.resource, second.resource):
        return "Compare with fewer workers: one profile cannot say what the crowding wastes."
    if first.resource in _LINES:
        return (
            "What is done while others stand in line is part of the same cost: remove the line, "
            "then profile again."
        )
    ahead_s = abs(first.cost_s - second.cost_s)
    error_s = _error_s(first) + _error_s(second)
    factor = (Z95 * error_s / ahead_s) ** 2 if ahead_s > 0 else math.inf
    if factor <= _LONGEST:
        more_s = wall_s * max(0.2, factor - 1)
        return f"Profile for about {seconds(more_s, 1)} longer."
    return "They cost about the same: fix one, then profile again."
