"""Flame graphs of waiting: stacks below the state their thread was blocked in, as wide as the time.

The I/O flame graph. What is drawn is real time: of each state as long as threads were blocked in
it, divided among its stacks as they were seen. Idleness is left out: workers count inside fetches,
the consumer outside of its waits for workers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from jupyter_ioscope.diagnosis.blocked_instants import Instant, instants_of, seen_outside
from jupyter_ioscope.diagnosis.blocked_stacks import (
    BlockedPlace,
    blocked_in,
    is_wait,
    state_times,
)
from jupyter_ioscope.diagnosis.over_time import stretches_of
from jupyter_ioscope.model.observed import BlockedStacks
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Frame, Stack
from jupyter_ioscope.units import seconds
from jupyter_ioscope.views.flame import Timed, Tree, grow
from jupyter_ioscope.views.frames import ROOT, FrameText, frame_texts
from jupyter_ioscope.views.spans import STRETCHES
from jupyter_ioscope.views.words import shorten

STATE_LABELS = {
    "disk": "waiting for files and disks",
    "page_fault": "waiting for pages of memory maps",
    "gil": "in line for the GIL",
    "lock": "in line for locks between processes",
    "futex": "waiting for locks and threads of the process",
    "network": "waiting for the network",
    "poll": "waiting in poll or select",
    "pipe": "waiting for pipes",
    "sleep": "sleeping",
    "wait_child": "waiting for child processes",
    "blocked": "waiting, reason not visible",
}
GROUPS = (
    ("waits-workers", "waits of workers", "worker"),
    ("waits-consumer", "waits of the consumer", "consumer"),
)
_LEAST_INSTANTS = 3
_DETAIL_LIMIT = 110


class Weighed(NamedTuple):
    """Stacks by state of some threads: frames, and stacks below a frame for their state. Counts are
    microseconds of real time; `over` divides each among the stretches of the run."""

    frames: list[Frame]
    stacks: list[Stack]
    over: list[dict[int, float]]
    instants: int
    states_from: int  # index of the first frame that stands for a state


def wait_trees(profile: Profile) -> list[Tree]:
    """Workers and consumer, where they were seen waiting; empty without stacks by state."""
    found = []
    for key, label, role in GROUPS:
        made = weighed(profile, role, phases_of(profile, role))
        if made is not None:
            texts = texts_of(profile, role, made.frames, made.states_from)
            functions, _ = frame_texts(made.frames)
            root = grow(made.stacks, functions)
            note = f"{seconds(root.count / 1e6)} of waiting, seen at {made.instants:,} instants"
            if root.count:
                found.append(Tree(key, label, root, texts, note, timed(made, functions)))
    return found


def phases_of(profile: Profile, role: str) -> Sequence[str] | None:
    """The phases in which waiting is no idleness; None where phases are not known."""
    if role == "consumer":
        return ("setup", "fetch", "step", "other")
    return ("fetch",) if any(row.worker >= 0 for row in profile.fetches) else None


def weighed(profile: Profile, role: str, phases: Sequence[str] | None) -> Weighed | None:
    """What threads of a role waited for within phases (None: all). None: too little was seen."""
    blocked = profile.blocked
    if blocked is None or profile.wall_ns <= 0:
        return None
    rows = [
        row
        for row in instants_of(profile, (role,), None, None)
        if phases is None or row.phase in phases
    ]
    if len(rows) < _LEAST_INSTANTS:
        return None
    outside = seen_outside(profile, (role,), phases, None, None)
    times = state_times(profile, rows, outside, blocked.rate_hz)
    states_from = len(blocked.frames)
    frames = [*blocked.frames, *(Frame(label, "", 0) for label in STATE_LABELS.values())]
    stacks, over = _weighted(profile, blocked, rows, times)
    return Weighed(frames, stacks, over, len(rows), states_from)


def _weighted(
    profile: Profile, blocked: BlockedStacks, rows: Sequence[Instant], times: dict[str, float]
) -> tuple[list[Stack], list[dict[int, float]]]:
    grid = stretches_of(profile, STRETCHES)
    in_state = Counter(row.state for row in rows)
    seen: dict[tuple[int, str], list[int]] = {}
    for row in rows:
        seen.setdefault((row.stack, row.state), []).append(grid.at(row.time_ns))
    states = {state: len(blocked.frames) + i for i, state in enumerate(STATE_LABELS)}
    stacks, over = [], []
    for (number, state), stretches in sorted(seen.items()):
        stack = blocked.stacks[number]
        weight = times.get(state, 0.0) / in_state[state] / 1e3
        whole = (states[state], *stack.frames)
        time_us = round(len(stretches) * weight)
        stacks.append(Stack(stack.role, stack.worker, stack.pid, "", whole, time_us))
        over.append({at: n * weight for at, n in Counter(stretches).items()})
    return stacks, over


def timed(made: Weighed, functions: Sequence[int]) -> list[Timed]:
    """When, for `Tree.timed`."""
    return [
        Timed(tuple(functions[frame] for frame in stack.frames), over)
        for stack, over in zip(made.stacks, made.over, strict=True)
    ]


def texts_of(
    profile: Profile, role: str, frames: Sequence[Frame], states_from: int
) -> list[FrameText]:
    """The texts of all frames, with how long one wait lasts where that is known."""
    functions, texts = frame_texts(frames)
    places = blocked_in(profile, role, phases=phases_of(profile, role))
    return _with_waits(frames, functions, texts, places, states_from)


def _with_waits(
    frames: Sequence[Frame],
    functions: Sequence[int],
    texts: Sequence[FrameText],
    places: Sequence[BlockedPlace],
    states_from: int,
) -> list[FrameText]:
    """The texts with how long one wait lasts, where known."""
    waits = {(row.name, row.file): row.mean_wait_s for row in places}
    found = list(texts)
    for index, frame in enumerate(frames):
        number = functions[index]
        wait_s = waits.get((frame.name, frame.file), math.nan)
        text = texts[number]
        if states_from <= index < states_from + len(STATE_LABELS):
            found[number] = text._replace(detail="state of the thread", kind=ROOT)
        elif is_wait(frame):
            found[number] = text._replace(detail="what the kernel was asked for")
        elif wait_s > 0:
            detail = f"{text.detail}; one wait lasts {seconds(wait_s, 2)}"
            found[number] = text._replace(detail=shorten(detail, _DETAIL_LIMIT))
    return found
