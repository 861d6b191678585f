"""States of threads that could not be read from outside, taken from inside the processes.

Without the right to look into another process its threads are seen to be blocked, but not in what;
without a sampler they are not seen at all. A process may always look at itself: the thread that
takes stacks of blocked threads (`Profile.blocked`) notes what each was blocked in.

Without a sampler how long threads stood in line for a core is not known either. Of a fetch's time
off the CPU it is what instants do not show as blocked, where the kernel took the core away at
least as often as the fetch gave it up (`RUSAGE_THREAD`'s switches). Where a fetch gave it up more
often, it may have been blocked while it kept the GIL, which no instant shows: so it is in major
page faults, which the kernel counts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace

from jupyter_ioscope.diagnosis.blocked_instants import Instant, Phases, instants_of
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, ThreadReadings
from jupyter_ioscope.model.records import Fetch

_ROLES = ("consumer", "worker")
_UNSEEN = STATES.index("blocked")
# Instants are about 50 ms apart: a state so near, in the same phase, most likely is the same.
_NEAR_NS = 200_000_000
_CLOSE_NS = 30_000_000
# Of the times that fetches gave their core up, the part in major page faults (measured: a half
# where a map is read from a slow mount, else none at all).
_FAULTING, _FEW_FAULTS = 0.3, 10
_PAGE_FAULT, _DISK = STATES.index("page_fault"), STATES.index("disk")
_BUSY = 0.02  # of a core: a thread of a pool that somebody uses

# (process, inside a fetch) -> instants in order of time.
_Seen = Mapping[tuple[int, bool], Sequence[Instant]]


def with_states_from_inside(profile: Profile) -> Profile:
    """The same profile, its unseen states filled in where they were seen from inside."""
    if profile.blocked is None:
        return profile
    unseen = any(_UNSEEN in row.states for row in profile.threads if row.role in _ROLES)
    if profile.threads and not unseen:
        return profile
    seen: dict[tuple[int, bool], list[Instant]] = {}
    for instant in instants_of(profile, _ROLES, None, None):
        seen.setdefault((instant.pid, instant.phase == "fetch"), []).append(instant)
    if not profile.threads:
        return replace(profile, threads=_from_inside_only(profile, seen))
    faulting = _faulting(profile)
    if not seen and not faulting and profile.batches:
        return profile
    phases = Phases(profile)
    threads = tuple(
        _filled(row, seen, phases, row.pid in faulting) if row.role in _ROLES else row
        for row in profile.threads
    )
    filled = replace(profile, threads=threads)
    return filled if profile.batches else _with_helpers(filled)


def _with_helpers(profile: Profile) -> Profile:
    """Where nothing was recorded the threads beside the cell's own one matter. Of those, one at a
    time was looked at: what it was blocked in stands for all that used a core."""
    seen = {(profile.pid, False): instants_of(profile, ("other",), None, None)}
    phases = Phases(profile)
    threads = tuple(
        _filled(row, seen, phases)
        if row.role == "other" and row.pid == profile.pid and _busy(row)
        else row
        for row in profile.threads
    )
    return replace(profile, threads=threads)


def _busy(row: ThreadReadings) -> bool:
    return row.run_ns >= _BUSY * max(1, row.last_ns - row.first_ns)


def _faulting(profile: Profile) -> set[int]:
    """Processes whose fetches are blocked in page faults, by what the kernel counted in them."""
    faults: dict[int, int] = {}
    given: dict[int, int] = {}
    for row in profile.fetches:
        faults[row.pid] = faults.get(row.pid, 0) + row.major_faults
        given[row.pid] = given.get(row.pid, 0) + row.voluntary_switches
    return {
        pid for pid, count in faults.items() if count >= max(_FEW_FAULTS, _FAULTING * given[pid])
    }


def _filled(
    row: ThreadReadings, seen: _Seen, phases: Phases, faulting: bool = False
) -> ThreadReadings:
    states = []
    for when, state in zip(row.sample_ns, row.states, strict=True):
        if state in (_UNSEEN, _DISK):
            inside = phases.of(row.pid, when)[0] == "fetch"
            faults = faulting and inside
            if state == _UNSEEN:
                near_ns = _CLOSE_NS if faults else _NEAR_NS
                state = _nearest(seen.get((row.pid, inside), ()), when, near_ns)
            if faults and state in (_UNSEEN, _DISK):
                state = _PAGE_FAULT
        states.append(state)
    return replace(row, states=tuple(states))


def _nearest(instants: Sequence[Instant], when_ns: int, near_ns: int) -> int:
    at = bisect_left(instants, when_ns, key=lambda row: row.time_ns)
    near = instants[max(0, at - 1) : at + 1]
    best = min(near, key=lambda row: abs(row.time_ns - when_ns), default=None)
    if best is None or abs(best.time_ns - when_ns) > near_ns:
        return _UNSEEN
    return STATES.index(best.state)


def _from_inside_only(profile: Profile, seen: _Seen) -> tuple[ThreadReadings, ...]:
    """Threads of which only blocked instants are known, and what their fetches counted."""
    workers = {row.pid: row.worker for row in profile.fetches if row.worker >= 0}
    workers |= {row.pid: row.worker for row in profile.workers}
    by_pid: dict[int, list[Instant]] = {}
    for (pid, _), instants in seen.items():
        by_pid.setdefault(pid, []).extend(instants)
    fetches: dict[int, list[Fetch]] = {}
    for row in profile.fetches:
        fetches.setdefault(row.pid, []).append(row)
        by_pid.setdefault(row.pid, [])
    rate_hz = profile.blocked.rate_hz if profile.blocked is not None else 0.0
    threads = []
    faulting = _faulting(profile)  # their few instants are those in which nothing was blocked
    for pid, instants in sorted(by_pid.items()):
        if pid in faulting:
            continue
        instants.sort()
        times = [row.time_ns for row in instants]
        times += [when for row in fetches.get(pid, ()) for when in (row.start_ns, row.end_ns)]
        blocked_ns = len(seen.get((pid, True), ())) / rate_hz * 1e9 if rate_hz > 0 else 0.0
        own = pid == profile.pid
        threads.append(
            ThreadReadings(
                pid=pid,
                tid=profile.consumer_tid if own else pid,
                name="",
                role="consumer" if own else "worker",
                worker=-1 if own else workers.get(pid, -1),
                first_ns=min(times),
                last_ns=max(times),
                run_ns=0,
                run_queue_ns=_in_line_ns(fetches.get(pid, ()), blocked_ns),
                major_faults=0,
                exact=False,
                sample_ns=tuple(row.time_ns for row in instants),
                states=tuple(STATES.index(row.state) for row in instants),
            )
        )
    return tuple(threads)


def _in_line_ns(fetches: Sequence[Fetch], blocked_ns: float) -> int:
    """Time of a process's fetches in line for a core, of which `blocked_ns` were seen blocked."""
    off_ns = sum(max(0, row.fetch_ns - row.cpu_ns) for row in fetches)
    lost = sum(row.involuntary_switches for row in fetches)
    given = sum(row.voluntary_switches for row in fetches)
    if not lost:
        return 0
    part = 1.0 if lost >= given else lost / (lost + given)
    return int(part * max(0.0, off_ns - blocked_ns))
