"""What the time before the first batch is made of: before the loop, in `iter()`, in a first fetch.

Stacks carry no times. Those of `iter()` and `next()` are known by the loader's frames in them; what
comes before the loop and what comes after the start of it are told apart by the line that the
loop's own function stands in, where the loader was seen below it, else by how long both took.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from jupyter_ioscope.diagnosis import kinds
from jupyter_ioscope.diagnosis.loop import loop_of
from jupyter_ioscope.diagnosis.places import place_of
from jupyter_ioscope.diagnosis.steps import consumer_stacks
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, Frame
from jupyter_ioscope.model.records import Fetch

# Where neither side can be told by lines, one that lasted this many times as long stands for all.
_FAR_LONGER = 3.0


@dataclass(frozen=True)
class Spent:
    """Samples by kind of work (see `kinds.before_kind`, "" where no library tells), and the user's
    places they were seen in, most first."""

    kinds: Mapping[str, float]
    places: tuple[str, ...]

    @property
    def samples(self) -> float:
        return sum(self.kinds.values())

    def fraction(self, *names: str) -> float:
        whole = self.samples
        return sum(self.kinds.get(name, 0.0) for name in names) / whole if whole else 0.0

    @property
    def largest(self) -> str:
        """The kind seen most; "" where nothing was seen, or nothing that a library names."""
        return max(self.kinds, key=lambda name: self.kinds[name], default="")


def before_loop(profile: Profile) -> Spent:
    """What was done between the start of the profile and the first `iter()`."""
    loop = loop_of(profile)
    if loop is None:
        return Spent({}, ())
    before_ns = max(0, loop.start_ns - profile.start_ns)
    after_ns = max(0, profile.end_ns - loop.start_ns) - loop.blocked_ns
    place, line = _loop_line(profile)
    rows: list[tuple[Sequence[Frame], float]] = []
    for stack, frames in consumer_stacks(profile):
        if kinds.in_loader(frames) and not _prepares(frames):
            continue
        at = [frame.line for frame in frames if (frame.name, frame.file) == place]
        once = kinds.before_kind(frames) in kinds.NEVER_IN_STEPS
        longer = once or before_ns > _FAR_LONGER * after_ns
        if at[0] < line if at else longer:
            rows.append((frames, float(stack.count)))
    return _spent(rows)


def starting(profile: Profile) -> Spent:
    """What the consumer did inside `iter()` and `next()` that was not getting items: starting
    workers, drawing the order of the samples. Waiting for workers is not in it."""
    rows = []
    for stack, frames in consumer_stacks(profile):
        if not kinds.in_loader(frames) or kinds.in_fetch(frames) or _waits_for_workers(frames):
            continue
        rows.append((frames, float(stack.count)))
    return _spent(rows)


def own_sampler(profile: Profile) -> str:
    """The user's place in which the order of the samples is made, below the loader's call for the
    next indices; "" where it is made in torch's own samplers."""
    found: dict[str, int] = {}
    for stack, frames in consumer_stacks(profile):
        at = [i for i, frame in enumerate(frames) if kinds.before_kind([frame]) == kinds.SAMPLING]
        place = place_of(frames[at[0] :]) if at else ""
        found[place] = found.get(place, 0) + stack.count if at else 0
    return max(found, key=lambda name: found[name], default="")


def worker_starts(profile: Profile) -> tuple[float, float]:
    """(samples that import, all samples) of workers before they entered their loop."""
    stacks = profile.stacks
    imports = whole = 0.0
    for stack in stacks.stacks if stacks else ():
        if stack.role != "worker":
            continue
        frames = [stacks.frames[i] for i in stack.frames if 0 <= i < len(stacks.frames)]  # type: ignore[union-attr]
        if not any(kinds.path(frame).endswith("multiprocessing/spawn.py") for frame in frames):
            continue
        whole += stack.count
        if kinds.before_kind(frames) == kinds.IMPORTING:
            imports += stack.count
    return imports, whole


def first_fetch_extra_ns(fetches: Sequence[Fetch]) -> int:
    """How much longer the consumer's own first fetch took than usual ones: what is opened, read or
    skipped then. 0 with fewer than four fetches.

    Of a memory-mapped file that is not in memory yet, the first fetch waits for most pages, and
    later ones for more of them: that is how it is read, and no set-up. The CPU stays.
    """
    own = [row for row in fetches if row.worker < 0]
    if len(own) < 4:
        return 0
    if 0 < own[0].major_faults <= sum(row.major_faults for row in own[1:]):
        return max(0, int(own[0].cpu_ns - median(row.cpu_ns for row in own[1:])))
    return max(0, int(own[0].fetch_ns - median(row.fetch_ns for row in own[1:])))


def waited_for(profile: Profile, first_ns: int, last_ns: int) -> str:
    """State in which the consumer was seen most often between two instants; "" without samples."""
    counts: dict[str, int] = {}
    for row in profile.threads:
        if row.role != "consumer":
            continue
        for time_ns, state in zip(row.sample_ns, row.states, strict=False):
            if first_ns <= time_ns < last_ns and 0 <= state < len(STATES):
                counts[STATES[state]] = counts.get(STATES[state], 0) + 1
    return max(counts, key=lambda name: counts[name], default="")


def _loop_line(profile: Profile) -> tuple[tuple[str, str], int]:
    """(name and file of the function that iterates the loader, line of its loop)."""
    seen: dict[tuple[str, str], dict[int, int]] = {}
    for stack, frames in consumer_stacks(profile):
        for above, below in pairwise(frames):
            if kinds.in_loader([below]) and not kinds.in_loader([above]):
                if not _prepares(frames):
                    lines = seen.setdefault((above.name, above.file), {})
                    lines[above.line] = lines.get(above.line, 0) + stack.count
                break
    if not seen:
        return ("", ""), 0
    place = max(seen, key=lambda key: sum(seen[key].values()))
    return place, max(seen[place], key=lambda line: seen[place][line])


def _prepares(frames: Sequence[Frame]) -> bool:
    """Whether a stack in a dataset library makes a dataset, and does not iterate one."""
    return not any("/torch/utils/data/" in kinds.path(f) or f.name.endswith("__iter__")
                   for f in frames)  # fmt: skip


def _waits_for_workers(frames: Sequence[Frame]) -> bool:
    return any(
        frame.name.rpartition(".")[2] in ("_try_get_data", "_shutdown_workers") for frame in frames
    )


def _spent(rows: Sequence[tuple[Sequence[Frame], float]]) -> Spent:
    counts: dict[str, float] = {}
    places: dict[str, float] = {}
    for frames, count in rows:
        kind = kinds.before_kind(frames)
        counts[kind] = counts.get(kind, 0.0) + count
        place = place_of(frames)
        if place:
            places[place] = places.get(place, 0.0) + count
    return Spent(counts, tuple(sorted(places, key=lambda key: -places[key])[:3]))
