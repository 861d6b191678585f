"""Flame graphs by state: all time of the workers, and of the consumer, divided by what they did.

How long threads ran and stood in the run queue is the kernel's own account, waits come from the
stacks by state, and what is left is idleness. Where running threads were is estimated: samples of
all time carry no state, so each function's samples count less by the part of its time in which it
was seen waiting.
"""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_ioscope.diagnosis.blocked_instants import Phases
from jupyter_ioscope.diagnosis.over_time import stretches_of
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, Frame, Stack, Stacks, ThreadReadings
from jupyter_ioscope.units import seconds
from jupyter_ioscope.views.flame import Timed, Tree, grow, trees
from jupyter_ioscope.views.flame_waits import (
    Weighed,
    phases_of,
    texts_of,
    timed,
    wait_trees,
    weighed,
)
from jupyter_ioscope.views.frames import STATE, frame_texts
from jupyter_ioscope.views.spans import STRETCHES

RUNNING, QUEUED, IDLE = "running", "in the run queue", "idle"
_DETAILS = {
    RUNNING: "on a core; functions below are estimated, see the root",
    QUEUED: "wanted a core and had none",
    IDLE: "nothing to do: workers without a task, the loop waiting for a batch",
}
_GROUPS = (("states-workers", "workers by state", "worker"),
           ("states-consumer", "consumer by state", "consumer"))  # fmt: skip


def all_trees(profile: Profile) -> list[Tree]:
    """Flame graphs of all time, then those by state, or of waiting where that is all there is."""
    return [*trees(profile.stacks), *(state_trees(profile) or wait_trees(profile))]


def state_trees(profile: Profile) -> list[Tree]:
    """Workers and consumer by state; empty without stacks by state or exact times of threads."""
    found = []
    for key, label, role in _GROUPS:
        threads = [row for row in profile.threads if row.role == role and row.exact]
        waits = weighed(profile, role, phases_of(profile, role))
        if threads and waits is not None:
            found.append(_tree(profile, key, label, role, threads, waits))
    return [tree for tree in found if tree.root.count]


def _tree(
    profile: Profile,
    key: str,
    label: str,
    role: str,
    threads: Sequence[ThreadReadings],
    waits: Weighed,
) -> Tree:
    first = len(waits.frames)
    times = _times(threads, waits)
    frames = [*waits.frames, *(Frame(name, "", 0) for name in times)]
    running = _running(profile, role, times[RUNNING], first, len(frames))
    frames += running[0]
    states = [
        Stack(role, -1, 0, "", (first + place,), time_us)
        for place, (name, time_us) in enumerate(times.items())
        if name != RUNNING or not running[1]
    ]
    functions, _ = frame_texts(frames)
    texts = texts_of(profile, role, frames, waits.states_from)
    for place, name in enumerate(times):
        number = functions[first + place]
        texts[number] = texts[number]._replace(detail=_DETAILS[name], kind=STATE)
    root = grow([*waits.stacks, *running[1], *states], functions)
    over = _over(profile, role, threads, times)
    when = [Timed((functions[first + place],), over[name]) for place, name in enumerate(times)]
    note = (
        f"{seconds(root.count / 1e6)} of {len(threads)} thread{'s' * (len(threads) > 1)}: running "
        "and run queue exact; where they ran from samples less those of waiting"
    )
    return Tree(key, label, root, texts, note, [*timed(waits, functions), *when])


def _times(threads: Sequence[ThreadReadings], waits: Weighed) -> dict[str, int]:
    """Microseconds that threads ran, queued and idled."""
    wall_us = sum(row.last_ns - row.first_ns for row in threads) / 1e3
    ran_us = sum(row.run_ns for row in threads) / 1e3
    queued_us = sum(row.run_queue_ns for row in threads) / 1e3
    waited_us = sum(stack.count for stack in waits.stacks)
    idle_us = max(0.0, wall_us - ran_us - queued_us - waited_us)
    return {RUNNING: round(ran_us), QUEUED: round(queued_us), IDLE: round(idle_us)}


def _running(
    profile: Profile, role: str, ran_us: int, state: int, first: int
) -> tuple[list[Frame], list[Stack]]:
    """Frames from `first` on, and stacks below frame `state` whose counts add up to `ran_us`; none
    where samples were taken from inside, which see a thread mostly where it lets go of the GIL."""
    stacks = profile.stacks
    if stacks is None or stacks.source != "py-spy" or stacks.rate_hz <= 0:
        return [], []
    own = [one for one in stacks.stacks if one.role == role and one.frames and one.count > 0]
    waited_us = _waited_by_function(weighed(profile, role, None))
    seen: dict[tuple[str, str], float] = {}
    for stack in own:
        leaf = _leaf(stacks, stack)
        seen[leaf] = seen.get(leaf, 0.0) + stack.count / stacks.rate_hz * 1e6
    leaves = [_leaf(stacks, stack) for stack in own]
    parts = [
        stack.count * max(0.0, 1 - waited_us.get(leaf, 0.0) / seen[leaf])
        for stack, leaf in zip(own, leaves, strict=True)
    ]
    whole = sum(parts)
    if not whole:
        return [], []
    made = [
        stack._replace(
            frames=(state, *(first + frame for frame in stack.frames)),
            count=round(part * ran_us / whole),
        )
        for stack, part in zip(own, parts, strict=True)
    ]
    return list(stacks.frames), made


def _leaf(stacks: Stacks, stack: Stack) -> tuple[str, str]:
    frame = stacks.frames[stack.frames[-1]]
    return frame.name.rpartition(".")[2], frame.file


def _waited_by_function(waits: Weighed | None) -> dict[tuple[str, str], float]:
    """Innermost function -> microseconds seen waiting in it. The waits themselves are no functions;
    py-spy and the interpreter qualify names differently, so only their last part counts."""
    found: dict[tuple[str, str], float] = {}
    for stack in waits.stacks if waits else ():
        named = [waits.frames[n] for n in stack.frames[1:]] if waits else []
        files = [frame for frame in named if frame.file]
        if files:
            key = files[-1].name.rpartition(".")[2], files[-1].file
            found[key] = found.get(key, 0.0) + stack.count
    return found


def _over(
    profile: Profile, role: str, threads: Sequence[ThreadReadings], times: dict[str, int]
) -> dict[str, dict[int, float]]:
    """When threads ran, queued and idled, as their sampled states lay."""
    grid, where = stretches_of(profile, STRETCHES), Phases(profile)
    phases = phases_of(profile, role)
    counts: dict[str, dict[int, float]] = {RUNNING: {}, IDLE: {}}
    for row in threads:
        for when, number in zip(row.sample_ns, row.states, strict=True):
            running = STATES[number] == "running"
            if running or (phases is not None and where.of(row.pid, when)[0] not in phases):
                one = counts[RUNNING if running else IDLE]
                one[grid.at(when)] = one.get(grid.at(when), 0.0) + 1
    counts[QUEUED] = counts[RUNNING]  # a thread in the run queue is sampled as running
    return {
        name: {at: n * time_us / sum(counts[name].values()) for at, n in counts[name].items()}
        for name, time_us in times.items()
    }
