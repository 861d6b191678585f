"""The instants at which threads were seen blocked, with the phase they fell into."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from jupyter_ioscope.diagnosis.phases import Interval, Lookup, union
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, ThreadReadings

# What a thread was in the middle of.
#   setup  before the first iter(), or inside one
#   fetch  inside a fetch
#   step   the consumer had a batch
#   wait   the consumer was in next(), for a worker
#   other  none of these
PHASES = ("setup", "fetch", "step", "wait", "other")


class Instant(NamedTuple):
    """One thread at one instant. `turn` is -1 where unknown; `part` tells fetches apart."""

    time_ns: int
    pid: int
    stack: int  # index into BlockedStacks.stacks
    state: str
    turn: int
    phase: str
    part: int


class Phases:
    """Phase of an instant, by process."""

    def __init__(self, profile: Profile) -> None:
        self._own_pid = profile.pid
        rows: dict[int, list[Interval]] = {}
        for fetch in profile.fetches:
            rows.setdefault(fetch.pid, []).append((fetch.start_ns, fetch.end_ns))
        self._fetches = {pid: Lookup(union(spans)) for pid, spans in rows.items()}
        iters = [(row.iter_start_ns, row.iter_end_ns) for row in profile.epochs]
        first = min((row.iter_start_ns for row in profile.epochs), default=profile.start_ns)
        self._setup = Lookup(union([(profile.start_ns, first), *iters]))
        self._steps = Lookup(union((r.wait_end_ns, r.step_end_ns) for r in profile.batches))
        self._waits = Lookup(union((r.wait_start_ns, r.wait_end_ns) for r in profile.batches))

    def of(self, pid: int, time_ns: int) -> tuple[str, int]:
        """(phase, number of the stretch of it). Threads of one process share its phases."""
        found = self._fetches[pid].index(time_ns) if pid in self._fetches else -1
        if found >= 0:
            return "fetch", found
        if pid == self._own_pid:
            for name, lookup in (
                ("setup", self._setup),
                ("step", self._steps),
                ("wait", self._waits),
            ):
                found = lookup.index(time_ns)
                if found >= 0:
                    return name, found
        return "other", -1


def instants_of(
    profile: Profile, roles: Sequence[str], start_ns: int | None, end_ns: int | None
) -> list[Instant]:
    """All instants of threads of some roles between two times, in order of time."""
    blocked = profile.blocked
    if blocked is None:
        return []
    phases = Phases(profile)
    low = profile.start_ns if start_ns is None else start_ns
    high = profile.end_ns if end_ns is None else end_ns
    found = []
    for number, stack in enumerate(blocked.stacks):
        if stack.role not in roles:
            continue
        turns = stack.turns or (-1,) * len(stack.seen_ns)
        for when, turn in zip(stack.seen_ns, turns, strict=True):
            if low <= when < high:
                phase, part = phases.of(stack.pid, when)
                state = STATES[stack.state]
                found.append(Instant(when, stack.pid, number, state, turn or -1, phase, part))
    found.sort()
    return found


@dataclass
class Outside:
    """Blocked time of threads by state, from exact thread times and states seen from outside."""

    wall_ns: int = 0
    blocked_ns: int = 0
    samples: int = 0
    state_ns: dict[str, float] = field(default_factory=dict)

    def add(self, reading: ThreadReadings, wanted: Iterable[str]) -> None:
        """`wanted` are the states of the reading's samples that count; "" for the others."""
        wall_ns = reading.last_ns - reading.first_ns
        blocked_ns = max(0, wall_ns - reading.run_ns - reading.run_queue_ns)
        states = list(wanted)
        blocked = [state for state in states if state != "running"]
        counted = [state for state in blocked if state]
        self.wall_ns += wall_ns
        self.samples += len(counted)
        if not blocked:
            return
        if not reading.exact:
            blocked_ns = wall_ns * len(blocked) // len(states)
        self.blocked_ns += blocked_ns * len(counted) // len(blocked)
        for state in counted:
            self.state_ns[state] = self.state_ns.get(state, 0.0) + blocked_ns / len(blocked)


def seen_outside(
    profile: Profile,
    roles: Sequence[str],
    phases: Sequence[str] | None,
    start_ns: int | None,
    end_ns: int | None,
) -> Outside:
    """How long threads of some roles were blocked in each state, within phases and times."""
    where = Phases(profile)
    found = Outside()
    for reading in profile.threads:
        if reading.role in roles:
            found.add(reading, _wanted(reading, where, phases, start_ns, end_ns))
    return found


def _wanted(
    reading: ThreadReadings,
    where: Phases,
    phases: Sequence[str] | None,
    start_ns: int | None,
    end_ns: int | None,
) -> Iterator[str]:
    for when, number in zip(reading.sample_ns, reading.states, strict=True):
        state = STATES[number]
        outside = (start_ns is not None and when < start_ns) or (
            end_ns is not None and when >= end_ns
        )
        if state != "running" and (
            outside or (phases is not None and where.of(reading.pid, when)[0] not in phases)
        ):
            state = ""
        yield state
