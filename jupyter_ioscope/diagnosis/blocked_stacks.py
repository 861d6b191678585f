"""In which functions threads waited, for what, for how long: stacks joined with states.

How often a function was seen blocked, among the instants at which its thread was blocked in that
state, is a share of the state's time. How much time that is comes from elsewhere: exact thread
times and states read from outside (Neyman's stratified estimate, with states as the strata).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jupyter_ioscope.diagnosis.blocked_instants import (
    Instant,
    Outside,
    instants_of,
    seen_outside,
)
from jupyter_ioscope.diagnosis.blocked_waits import mean_waits
from jupyter_ioscope.diagnosis.hot import users
from jupyter_ioscope.diagnosis.spread import shares
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.observed import BlockedStack, BlockedStacks
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Frame

_ENOUGH_OUTSIDE = 20  # states seen from outside below which they say less than those from inside


class BlockedPlace(NamedTuple):
    """One place of the user's code and what was waited for in it.

    `fraction` is its part of the blocked time that was asked for, `error` one standard error of
    it; `time_ns` is that in time, over all threads; `wall_fraction` is `time_ns` over their wall
    time. `mean_wait_s` is how long one wait lasts there, nan where unknown, see `blocked_waits`.
    `below` is the library function that it mostly called, `call` the wait itself ("fsync", "page
    fault"), "" where unknown; `seen` counts instants.
    """

    name: str
    file: str
    line: int
    state: str
    fraction: float
    error: float
    time_ns: int
    wall_fraction: float
    mean_wait_s: float
    below: str
    call: str
    seen: int

    @property
    def where(self) -> str:
        place = f"{self.file}, line {self.line}" if self.line else self.file
        return f"{self.name} in {place}" if place else self.name


def blocked_in(
    profile: Profile,
    role: str | Sequence[str],
    states: Sequence[str] | None = None,
    phases: Sequence[str] | None = None,
    start_ns: int | None = None,
    end_ns: int | None = None,
) -> list[BlockedPlace]:
    """The places in which threads of a role were blocked, most time first.

    Args:
        profile: what was recorded.
        role: one of `readings.ROLES`, or several.
        states: of `readings.STATES`; None for all.
        phases: of `blocked_instants.PHASES`; None for all.
        start_ns: only instants from then on.
        end_ns: only instants before then.

    Raises:
        NotMeasuredError: the profile has no stacks by state.
    """
    blocked = _need(profile)
    roles = (role,) if isinstance(role, str) else tuple(role)
    seen = [
        row
        for row in instants_of(profile, roles, start_ns, end_ns)
        if phases is None or row.phase in phases
    ]
    outside = seen_outside(profile, roles, phases, start_ns, end_ns)
    weights = state_times(profile, seen, outside, blocked.rate_hz)
    wanted = {s: ns for s, ns in weights.items() if states is None or s in states}
    whole_ns = sum(wanted.values())
    if not whole_ns:
        return []
    rows = [row for row in seen if row.state in wanted]
    places = [_place(blocked, stack) for stack in blocked.stacks]
    found = _fractions(rows, places, {s: ns / whole_ns for s, ns in wanted.items()}, outside)
    busy = 1 - outside.blocked_ns / outside.wall_ns if outside.wall_ns else 0.0
    waits = mean_waits(seen, [places[row.stack] for row in seen], blocked.rate_hz, busy)
    result = []
    for key, (fraction, error) in found.items():
        own = [row for row in rows if places[row.stack] == key]
        line, below, call = _details(blocked, own)
        result.append(
            BlockedPlace(
                name=key[0],
                file=key[1],
                line=line,
                state=_most(Counter(row.state for row in own)),
                fraction=fraction,
                error=error,
                time_ns=int(fraction * whole_ns),
                wall_fraction=fraction * whole_ns / outside.wall_ns if outside.wall_ns else 0.0,
                mean_wait_s=waits.get(key, math.nan),
                below=below,
                call=call,
                seen=len(own),
            )
        )
    return sorted(result, key=lambda row: (-row.fraction, row.name, row.file))


def blocked_states(
    profile: Profile, role: str | Sequence[str], phases: Sequence[str] | None = None
) -> dict[str, tuple[float, float, int]]:
    """State -> (part of the blocked time, one standard error, time in ns over all threads).

    Raises:
        NotMeasuredError: the profile has no stacks by state.
    """
    blocked = _need(profile)
    roles = (role,) if isinstance(role, str) else tuple(role)
    seen = [r for r in instants_of(profile, roles, None, None) if not phases or r.phase in phases]
    outside = seen_outside(profile, roles, phases, None, None)
    times = state_times(profile, seen, outside, blocked.rate_hz)
    whole_ns = sum(times.values())
    count = max(len(seen), outside.samples) + 2
    found = {}
    for state, ns in sorted(times.items(), key=lambda item: -item[1]):
        fraction = ns / whole_ns if whole_ns else 0.0
        error = math.sqrt(max(fraction * (1 - fraction), 1 / count) / count)
        found[state] = fraction, error, int(ns)
    return found


def stacks_at(
    profile: Profile, role: str | Sequence[str], start_ns: int, end_ns: int
) -> list[tuple[BlockedStack, int]]:
    """Stacks that threads of a role were blocked in between two instants, most often seen first.

    Raises:
        NotMeasuredError: the profile has no stacks by state.
    """
    roles = (role,) if isinstance(role, str) else tuple(role)
    found = []
    for stack in _need(profile).stacks:
        count = sum(start_ns <= when < end_ns for when in stack.seen_ns)
        if stack.role in roles and count:
            found.append((stack, count))
    return sorted(found, key=lambda item: -item[1])


def fetching_role(profile: Profile) -> str:
    """Whose threads fetch: "worker", or "consumer" where it fetches for itself."""
    return "worker" if any(row.worker >= 0 for row in profile.fetches) else "consumer"


def is_wait(frame: Frame) -> bool:
    """Whether a frame is a wait itself, see `BlockedStack`, and no function."""
    return not frame.file and frame.name.startswith("[")


def _need(profile: Profile) -> BlockedStacks:
    if profile.blocked is None:
        gaps = [row.reason for row in profile.not_measured if row.what == "stacks by state"]
        raise NotMeasuredError("what functions waited for", gaps[0] if gaps else "no stacks taken")
    return profile.blocked


def state_times(
    profile: Profile, seen: Sequence[Instant], outside: Outside, rate_hz: float
) -> dict[str, float]:
    """State -> time blocked in it, in ns. States seen from outside are fair to the GIL and to
    waits that keep it, those from inside are not; but only with the right to see system calls do
    they tell all states apart."""
    if profile.tier == "full" and outside.samples >= _ENOUGH_OUTSIDE:
        return dict(outside.state_ns)
    counts = Counter(row.state for row in seen)
    whole = sum(counts.values())
    blocked_ns = outside.blocked_ns or (whole / rate_hz * 1e9 if rate_hz else 0.0)
    return {state: blocked_ns * count / whole for state, count in counts.items()}


Key = tuple[str, str]  # function and file


def _place(blocked: BlockedStacks, stack: BlockedStack) -> Key:
    frames = [blocked.frames[index] for index in stack.frames]
    own = [frame for frame in frames if users(frame)] or frames[-2:-1] or frames
    return (own[-1].name, own[-1].file) if own else ("(unknown)", "")


def _fractions(
    rows: Sequence[Instant],
    places: Sequence[Key],
    weights: Mapping[str, float],
    outside: Outside,
) -> dict[Key, tuple[float, float]]:
    """Place -> (part of the time in all the weighted states, one standard error).

    The variance of a stratified estimate: within each state the cluster error of `shares`, and
    the sampling error of the states' own weights.
    """
    sums: dict[Key, list[float]] = {}
    for state, weight in weights.items():
        clusters: dict[tuple[int, str, int, int], dict[str, int]] = {}
        names: dict[str, Key] = {}
        for row in rows:
            if row.state != state:
                continue
            key = places[row.stack]
            # Instants of one fetch, or else of one wait, are no independent draws.
            part = (
                row.part if row.phase == "fetch" else (row.turn if row.turn >= 0 else row.time_ns)
            )
            group = clusters.setdefault((row.pid, row.phase, part, 0), {})
            label = "\0".join(key)
            names[label] = key
            group[label] = group.get(label, 0) + 1
        for label, (fraction, error) in shares(clusters.values()).items():
            total = sums.setdefault(names[label], [0.0, 0.0])
            draws = max(outside.samples, 1)
            total[0] += weight * fraction
            total[1] += (weight * error) ** 2 + fraction**2 * weight * (1 - weight) / draws
    return {key: (min(1.0, total), math.sqrt(square)) for key, (total, square) in sums.items()}


def _details(blocked: BlockedStacks, rows: Sequence[Instant]) -> tuple[int, str, str]:
    """(commonest line, library function mostly below, wait mostly met) of one place."""
    lines: Counter[int] = Counter()
    below: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for row in rows:
        frames = [blocked.frames[index] for index in blocked.stacks[row.stack].frames]
        functions = [frame for frame in frames if not is_wait(frame)]
        at = max((i for i, frame in enumerate(functions) if users(frame)), default=-1)
        lines[functions[at].line if functions else 0] += 1
        deeper = functions[at + 1 :] if at >= 0 else []
        below[deeper[-1].name if deeper else ""] += 1
        calls[_call(frames[-1]) if frames and is_wait(frames[-1]) else ""] += 1
    return lines.most_common(1)[0][0] if lines else 0, _most(below), _most(calls)


def _call(frame: Frame) -> str:
    """`flock /tmp/x.lock` from the frame "[flock] /tmp/x.lock"."""
    name, _, rest = frame.name[1:].partition("]")
    return f"{name} {rest.strip()}".strip()


def _most(counts: Counter[str]) -> str:
    if not counts:
        return ""
    name, count = counts.most_common(1)[0]
    return name if 2 * count > sum(counts.values()) else ""
