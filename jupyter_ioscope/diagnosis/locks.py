"""Who waits for a lock and who holds it meanwhile: lines of code, kinds of lock."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jupyter_ioscope.diagnosis.blocked_instants import Phases
from jupyter_ioscope.diagnosis.blocked_stacks import BlockedPlace, blocked_in, is_wait
from jupyter_ioscope.diagnosis.hot import users
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, Frame, ThreadReadings

LOCKS = ("lock", "futex")
_BEAT_NS = 30_000_000  # threads are read one after the other, on a beat of 20 to 40 ms
_FEW = 5
_ENTRIES = ("__enter__", "acquire", "lock")
# One thread at a time holds a lock: where a second one could be it, nothing is said.
_WORDS = {
    "running": "runs",
    "disk": "waits for a file",
    "page_fault": "waits for pages of a memory map",
    "network": "waits for the network",
    "poll": "waits for the network",
    "sleep": "sleeps",
    "pipe": "waits for a pipe",
    "gil": "stands in line for the GIL",
    "wait_child": "waits for a child process",
}


class Held(NamedTuple):
    """`state` is what the holder was doing mostly, `fraction` how often, of the instants at which
    one thread waited and only one could hold the lock; `where` is "" where unknown."""

    state: str
    fraction: float
    where: str

    @property
    def doing(self) -> str:
        return _WORDS.get(self.state, "is blocked")


class Line(NamedTuple):
    """A line at a lock. `what` names the lock, `shared` says that processes share it."""

    waiting: BlockedPlace
    what: str
    shared: bool
    held: Held | None


def longest_line(profile: Profile, role: str) -> Line | None:
    """The lock at which fetching threads of a role stand in line most; None where none was seen.

    Raises:
        NotMeasuredError: the profile has no stacks by state.
    """
    places = blocked_in(profile, role, LOCKS, ("fetch",))
    waiting = next((row for row in places if row.seen), None)
    if waiting is None:
        return None
    shared = waiting.state == "lock"
    return Line(waiting, name_of(waiting), shared, _held(profile, role, waiting))


def name_of(waiting: BlockedPlace) -> str:
    """`a file lock (flock) on /tmp/x.lock`, `a lock that the processes share`."""
    call, _, path = waiting.call.partition(" ")
    if call in ("flock", "fcntl"):
        return f"a file lock ({call})" + (f" on {path}" if path else "")
    return "a lock that processes share" if waiting.state == "lock" else "a lock of this process"


def _held(profile: Profile, role: str, waiting: BlockedPlace) -> Held | None:
    doing = Counter(_holders(profile, role, waiting.state == "lock"))
    if sum(doing.values()) < _FEW:
        return None
    state, count = doing.most_common(1)[0]
    return Held(state, count / sum(doing.values()), _held_where(profile, role, waiting, state))


def _holders(profile: Profile, role: str, shared: bool) -> Iterator[str]:
    """What the holder was doing, at every instant at which a thread waited and all others but one
    waited too or were outside of a fetch."""
    threads = [row for row in profile.threads if row.role == role and row.sample_ns]
    if not shared:  # threads of one process
        threads += [row for row in profile.threads if row.role == "other" and row.sample_ns]
    phases = Phases(profile)
    for one in threads:
        others = [row for row in threads if row is not one and (shared or row.pid == one.pid)]
        for when, number in zip(one.sample_ns, one.states, strict=True):
            if STATES[number] not in LOCKS or phases.of(one.pid, when)[0] != "fetch":
                continue
            found = [
                state
                for row in others
                if phases.of(row.pid, when)[0] == "fetch"
                and (state := _state_at(row, when)) not in (*LOCKS, "")
            ]
            if len(found) == 1:
                yield found[0]


def _state_at(reading: ThreadReadings, when_ns: int) -> str:
    times = reading.sample_ns
    at = bisect_left(times, when_ns)
    near = [index for index in (at - 1, at) if 0 <= index < len(times)]
    best = min(near, key=lambda index: abs(times[index] - when_ns), default=-1)
    if best < 0 or abs(times[best] - when_ns) > _BEAT_NS:
        return ""
    return STATES[reading.states[best]]


def _held_where(profile: Profile, role: str, waiting: BlockedPlace, state: str) -> str:
    """The user's line that the holder was in: below the function that takes the lock, since what
    is done with the lock is done there, and elsewhere than where it is waited for."""
    taker = _taker(profile, role, waiting)
    counts: Counter[tuple[str, str, int]] = Counter()
    for frames, times in _stacks(profile, role, state):
        inside = [i for i, frame in enumerate(frames) if _same(frame, taker)]
        if not inside or frames[inside[-1]].line == taker.line:
            continue
        own = [frame for frame in frames[inside[-1] :] if users(frame)]
        counts[own[-1].name, own[-1].file, own[-1].line] += times
    if not counts:
        return ""
    name, file, line = counts.most_common(1)[0][0]
    return f"{name} in {file}, line {line}"


def _taker(profile: Profile, role: str, waiting: BlockedPlace) -> Frame:
    """The user's function that holds the lock after it was waited for: mostly the one that waits. A
    context manager of the user's own has returned by then, and its caller has the lock."""
    found: Counter[Frame] = Counter()
    blocked = profile.blocked
    for row in blocked.stacks if blocked else ():
        if row.role != role or STATES[row.state] not in LOCKS or not blocked:
            continue
        frames = [blocked.frames[index] for index in row.frames]
        own = [at for at, frame in enumerate(frames) if users(frame)]
        if own and _same(frames[own[-1]], waiting):
            while len(own) > 1 and _is_entry(frames, own[-1]):
                own.pop()
            found[frames[own[-1]]] += len(row.seen_ns)
    if found:
        return found.most_common(1)[0][0]
    return Frame(waiting.name, waiting.file, waiting.line)


def _is_entry(frames: Sequence[Frame], at: int) -> bool:
    """Whether a function only enters a `with` block, or takes a lock for its caller."""
    name = frames[at].name.rpartition(".")[2]
    above = frames[at - 1].file.replace("\\", "/") if at else ""
    return name in _ENTRIES or above.endswith("/contextlib.py")


def _same(frame: Frame, other: Frame | BlockedPlace) -> bool:
    return (frame.name, frame.file) == (other.name, other.file)


def _stacks(profile: Profile, role: str, state: str) -> Iterator[tuple[Sequence[Frame], int]]:
    """Stacks of threads that may have held it: running ones from outside, blocked ones by state."""
    if state == "running":
        stacks = profile.stacks
        for stack in stacks.stacks if stacks else ():
            if stack.role == role and stacks:
                yield [stacks.frames[index] for index in stack.frames], stack.count
        return
    blocked = profile.blocked
    for row in blocked.stacks if blocked else ():
        if row.role == role and STATES[row.state] == state and blocked:
            frames = [blocked.frames[index] for index in row.frames]
            yield [frame for frame in frames if not is_wait(frame)], len(row.seen_ns)
