"""What the consumer's step with a batch is made of: waits for a disk, saving, logging, stalls.

A step's length and CPU are exact. What it was spent on is sampled: the consumer's states are tagged
by the steps' times; its stacks are those outside the loader's `iter()` and `next()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from jupyter_ioscope.diagnosis import kinds
from jupyter_ioscope.diagnosis.consumer_waits import consumer_reading
from jupyter_ioscope.diagnosis.phases import Interval, Lookup, subtract, union
from jupyter_ioscope.diagnosis.places import place_of
from jupyter_ioscope.diagnosis.spread import shares
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, Frame, Stack
from jupyter_ioscope.model.records import Batch

# A stalled step takes this many times as long as the usual one, and this much longer.
STALL_TIMES = 2.0
STALL_NS = 10_000_000


class Stalls(NamedTuple):
    """Steps that took far longer than usual. `excess_ns` is what they took above it, exactly;
    `every` the usual number of steps from one to the next (0 for a single one or no rhythm)."""

    steps: int
    usual_ns: int
    excess_ns: int
    every: int
    spans: tuple[Interval, ...]


@dataclass(frozen=True)
class StepTime:
    """What all steps of a loop were made of.

    `disk` is the fraction of their time blocked in calls on files, with one standard error;
    `disk_in_stalls` how much of that lies in stalled steps. `kinds` gives fractions of their
    samples by kind of side work (see `kinds.step_kind`), of `samples` in all; `places` where.
    """

    step_ns: int
    disk: tuple[float, float]
    disk_in_stalls: float
    kinds: Mapping[str, float]
    places: Mapping[str, str]
    samples: int
    stalls: Stalls


def step_time(profile: Profile, batches: Sequence[Batch]) -> StepTime:
    """The steps of `batches`. Fractions are 0 where nothing was sampled."""
    spans = [(row.wait_end_ns, row.step_end_ns) for row in batches if row.step_ns > 0]
    inside = subtract(union(spans), union((r.wait_start_ns, r.wait_end_ns) for r in batches))
    stalls = stalls_of(batches)
    disk, share = _disk(profile, inside, stalls)
    counts, places, whole = _kinds(profile, sum(b - a for a, b in inside))
    found = {kind: min(1.0, count / whole) for kind, count in counts.items()} if whole else {}
    return StepTime(
        sum(end - start for start, end in inside), disk, share, found, places, whole, stalls
    )


def stalls_of(batches: Sequence[Batch]) -> Stalls:
    """Steps that stand out, against the median of all."""
    if not batches:
        return Stalls(0, 0, 0, 0, ())
    usual = int(median(row.step_ns for row in batches))
    least = max(STALL_TIMES * usual, usual + STALL_NS)
    rows = [(at, row) for at, row in enumerate(batches) if row.step_ns > least]
    gaps = [later - at for (at, _), (later, _) in pairwise(rows)]
    every = int(median(gaps)) if len(gaps) >= 2 and max(gaps) <= 2 * min(gaps) else 0
    return Stalls(
        len(rows),
        usual,
        sum(row.step_ns - usual for _, row in rows),
        every,
        tuple((row.wait_end_ns, row.step_end_ns) for _, row in rows),
    )


def _disk(
    profile: Profile, inside: Sequence[Interval], stalls: Stalls
) -> tuple[tuple[float, float], float]:
    """Fraction of the steps' time blocked on files, its error, and how much of it in stalls."""
    reading = consumer_reading(profile)
    if reading is None:
        return (0.0, 0.0), 0.0
    lookup, stalled = Lookup(inside), Lookup(union(stalls.spans))
    disk = STATES.index("disk")
    groups: dict[int, dict[str, int]] = {}
    hits = within = 0
    for time_ns, state in zip(reading.sample_ns, reading.states, strict=False):
        at = lookup.index(time_ns)
        if at < 0:
            continue
        kind = "disk" if state == disk else "else"
        group = groups.setdefault(at, {})
        group[kind] = group.get(kind, 0) + 1
        if state == disk:
            hits += 1
            within += stalled.index(time_ns) >= 0
    found = shares(groups.values()).get("disk", (0.0, 0.0))
    return found, within / hits if hits else 0.0


def _kinds(profile: Profile, step_ns: int) -> tuple[dict[str, float], dict[str, str], int]:
    """Samples by kind, where most of each was seen, and how many samples the steps have.

    Stacks carry no times: those outside the loader may also be from before or after the loop. So
    the number of the steps' samples follows from their length, and a kind has at most that many.
    """
    stacks = profile.stacks
    if stacks is None:
        return {}, {}, 0
    rows = list(consumer_stacks(profile))
    whole = sum(stack.count for stack, _ in rows)
    wall_ns = profile.wall_ns
    steps = round(whole * min(1.0, step_ns / wall_ns)) if wall_ns > 0 else 0
    calls = {(row.file, row.line): row.names for row in profile.calls}
    counts: dict[str, float] = {}
    seen: dict[str, dict[str, int]] = {}
    for stack, frames in rows:
        if kinds.in_loader(frames):
            continue
        kind = kinds.step_kind(frames) or kinds.call_kind(_calls_of_last(frames, calls))
        if kind:
            counts[kind] = counts.get(kind, 0) + stack.count
            place = place_of(frames)
            at = seen.setdefault(kind, {})
            at[place] = at.get(place, 0) + stack.count
    return counts, {kind: max(at, key=lambda key: at[key]) for kind, at in seen.items()}, steps


def _calls_of_last(
    frames: Sequence[Frame], calls: Mapping[tuple[str, int], tuple[str, ...]]
) -> tuple[str, ...]:
    return calls.get((frames[-1].file, frames[-1].line), ()) if frames else ()


def step_place(profile: Profile) -> str:
    """The user's function that the consumer was seen in most outside the loader; "" if unseen.

    Stacks carry no times: those that prepare a loop, such as a script's imports, are left out.
    """
    places: dict[str, int] = {}
    for stack, frames in consumer_stacks(profile):
        elsewhere = kinds.in_loader(frames) or kinds.before_kind(frames) in kinds.NEVER_IN_STEPS
        place = "" if elsewhere else place_of(frames)
        if place:
            places[place] = places.get(place, 0) + stack.count
    return max(places, key=lambda key: places[key], default="")


def samples_per_s(profile: Profile) -> float:
    """Stack samples of one thread in a second, as they came; 0 without any."""
    whole = sum(stack.count for stack, _ in consumer_stacks(profile))
    return whole / profile.wall_s if profile.wall_s > 0 else 0.0


def consumer_stacks(profile: Profile) -> Iterator[tuple[Stack, list[Frame]]]:
    """The consumer's stacks with their frames, outermost first."""
    stacks = profile.stacks
    if stacks is None:
        return
    for stack in stacks.stacks:
        if stack.role == "consumer":
            yield stack, [stacks.frames[i] for i in stack.frames if 0 <= i < len(stacks.frames)]
