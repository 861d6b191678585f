"""Flame graphs of waiting: stacks below the state their thread was blocked in, as wide as the time.

The I/O flame graph. What is drawn is real time: of each state as long as threads were blocked in
it, divided among its stacks as they were seen. Idleness is left out: workers count inside fetches,
the consumer outside of its waits for workers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from jupyter_ioscope.diagnosis.blocked_instants import Instant, instants_of, seen_outside
from jupyter_ioscope.diagnosis.blocked_stacks import (
    BlockedPlace,
    blocked_in,
    is_wait,
    state_times,
)
from jupyter_ioscope.model.observed import BlockedStacks
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Frame, Stack
from jupyter_ioscope.units import seconds
from jupyter_ioscope.views.flame import Tree, grow, trees
from jupyter_ioscope.views.frames import ROOT, FrameText, frame_texts
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
_GROUPS = (
    ("waits-workers", "waits of workers", "worker", ("fetch",)),
    ("waits-consumer", "waits of the consumer", "consumer", ("setup", "fetch", "step", "other")),
)
_LEAST_INSTANTS = 3
_DETAIL_LIMIT = 110


def all_trees(profile: Profile) -> list[Tree]:
    """Flame graphs of all time, then those of waiting."""
    return [*trees(profile.stacks), *wait_trees(profile)]


def wait_trees(profile: Profile) -> list[Tree]:
    """Workers and consumer, where they were seen waiting; empty without stacks by state."""
    blocked = profile.blocked
    if blocked is None:
        return []
    found = []
    for key, label, role, phases in _GROUPS:
        recorded = role == "consumer" or any(row.worker >= 0 for row in profile.fetches)
        tree = _tree(profile, blocked, key, label, role, phases if recorded else None)
        if tree is not None:
            found.append(tree)
    return found


def _tree(
    profile: Profile,
    blocked: BlockedStacks,
    key: str,
    label: str,
    role: str,
    phases: Sequence[str] | None,
) -> Tree | None:
    rows = [
        row
        for row in instants_of(profile, (role,), None, None)
        if phases is None or row.phase in phases
    ]
    if len(rows) < _LEAST_INSTANTS:
        return None
    outside = seen_outside(profile, (role,), phases, None, None)
    times = state_times(profile, rows, outside, blocked.rate_hz)
    states = list(STATE_LABELS)
    frames = [*blocked.frames, *(Frame(STATE_LABELS[state], "", 0) for state in states)]
    stacks = _weighted(
        blocked, rows, times, {s: len(blocked.frames) + i for i, s in enumerate(states)}
    )
    functions, texts = frame_texts(frames)
    places = blocked_in(profile, role, phases=phases)
    texts = _with_waits(frames, functions, texts, places, len(blocked.frames))
    root = grow(stacks, functions)
    if not root.count:
        return None
    note = f"{seconds(root.count / 1e6)} of waiting, seen at {len(rows):,} instants"
    return Tree(key, label, root, texts, note)


def _weighted(
    blocked: BlockedStacks,
    rows: Sequence[Instant],
    times: dict[str, float],
    state_frames: dict[str, int],
) -> list[Stack]:
    """Stacks below a frame for their state; counts are microseconds of real time."""
    in_state = Counter(row.state for row in rows)
    seen = Counter((row.stack, row.state) for row in rows)
    found = []
    for (number, state), count in sorted(seen.items()):
        stack = blocked.stacks[number]
        weight = times.get(state, 0.0) / in_state[state] / 1e3
        whole = (state_frames[state], *stack.frames)
        time_us = round(count * weight)
        found.append(Stack(stack.role, stack.worker, stack.pid, "", whole, time_us))
    return found


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
        if index >= states_from:
            found[number] = text._replace(detail="state of the thread", kind=ROOT)
        elif is_wait(frame):
            found[number] = text._replace(detail="what the kernel was asked for")
        elif wait_s > 0:
            detail = f"{text.detail}; one wait lasts {seconds(wait_s, 2)}"
            found[number] = text._replace(detail=shorten(detail, _DETAIL_LIMIT))
    return found
