"""Splits the time inside fetches: exact CPU, exact run queue, and blocked time by sampled state."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from jupyter_ioscope.diagnosis.phases import Interval, Lookup
from jupyter_ioscope.diagnosis.spread import shares
from jupyter_ioscope.model.readings import STATES, ThreadReadings

# State of a blocked thread inside a fetch -> part of wall time. The same poll outside a fetch is
# idleness; inside, the code polls a socket (it is how Python waits with a timeout).
IN_FETCH = {
    "disk": "disk",
    "page_fault": "page_fault",
    "network": "network",
    "poll": "network",
    "sleep": "sleep",
    "gil": "gil",
    "lock": "lock",
    "futex": "lock",
    "pipe": "process",
    "wait_child": "process",
    "blocked": "other",
}
# Without records of fetches: a poll is most likely the wait for the next task.
NO_PHASE = {**IN_FETCH, "poll": "idle", "futex": "other", "pipe": "hand_over"}

# What helper threads may be doing while a thread waits for them on a condition.
_HELPERS_BLOCKED = ("disk", "page_fault", "network", "sleep", "lock", "pipe", "wait_child")


class Span(NamedTuple):
    """One fetch of one process."""

    start_ns: int
    end_ns: int
    cpu_ns: int

    @property
    def wall_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass
class Seen:
    """What the sampler saw of one or several threads, restricted to a window of each.

    `run_ns` and `queue_ns` are exact over `wall_ns`; the fetches of the window make up `fetch_ns`
    of it, with `fetch_cpu_ns` on a core. `clusters` holds the blocked samples, one group a fetch.
    """

    wall_ns: int = 0
    run_ns: int = 0
    queue_ns: int = 0
    fetch_ns: int = 0
    fetch_cpu_ns: int = 0
    runnable_inside: int = 0
    runnable_outside: int = 0
    samples_inside: int = 0
    samples_outside: int = 0
    exact: bool = True
    clusters: list[dict[str, int]] = field(default_factory=list)

    def add(self, other: Seen) -> None:
        self.wall_ns += other.wall_ns
        self.run_ns += other.run_ns
        self.queue_ns += other.queue_ns
        self.fetch_ns += other.fetch_ns
        self.fetch_cpu_ns += other.fetch_cpu_ns
        self.runnable_inside += other.runnable_inside
        self.runnable_outside += other.runnable_outside
        self.samples_inside += other.samples_inside
        self.samples_outside += other.samples_outside
        self.exact = self.exact and other.exact
        self.clusters += other.clusters

    @property
    def queue_inside_ns(self) -> int:
        """Run-queue time inside fetches. A thread stands in the run queue when it is runnable, so
        the exact total is divided as CPU time is; what does not fit outside was inside."""
        most = max(0, self.fetch_ns - self.fetch_cpu_ns)
        if not self.exact and self.queue_ns:  # an estimate for fetches alone
            return min(most, self.queue_ns)
        if not self.exact:
            seen = self.runnable_inside / self.samples_inside if self.samples_inside else 0.0
            return min(most, max(0, int(seen * self.fetch_ns) - self.fetch_cpu_ns))
        used = max(self.run_ns, self.fetch_cpu_ns)
        by_cpu = self.queue_ns * self.fetch_cpu_ns // used if used else 0
        off_cpu_outside = max(0, self.wall_ns - self.fetch_ns - self.cpu_outside_ns)
        return min(most, max(by_cpu, self.queue_ns - off_cpu_outside))

    @property
    def cpu_outside_ns(self) -> int:
        most = max(0, self.wall_ns - self.fetch_ns)
        if not self.exact:
            seen = self.runnable_outside / self.samples_outside if self.samples_outside else 0.0
            return int(seen * most)
        return min(most, max(0, self.run_ns - self.fetch_cpu_ns))

    @property
    def queue_outside_ns(self) -> int:
        most = max(0, self.wall_ns - self.fetch_ns - self.cpu_outside_ns)
        return min(most, max(0, self.queue_ns - self.queue_inside_ns)) if self.exact else 0


def seen_in(
    reading: ThreadReadings,
    spans: Sequence[Span],
    window: Interval,
    helpers: Sequence[ThreadReadings] = (),
    run_before_ns: tuple[int, int] = (0, 0),
) -> Seen:
    """What the sampler saw of a thread in `window`. `spans` are its fetches, sorted.

    `run_before_ns` is the part of the thread's exact (run, run queue) that lies before the window.
    """
    first, last = window
    seen = Seen(wall_ns=max(0, last - first), exact=reading.exact)
    seen.run_ns = max(0, reading.run_ns - run_before_ns[0])
    seen.queue_ns = max(0, reading.run_queue_ns - run_before_ns[1])
    for span in spans:
        inside_ns = min(span.end_ns, last) - max(span.start_ns, first)
        if inside_ns > 0:
            seen.fetch_ns += inside_ns
            seen.fetch_cpu_ns += min(inside_ns, span.cpu_ns * inside_ns // max(1, span.wall_ns))
    _count(seen, reading, Lookup([(span.start_ns, span.end_ns) for span in spans]), window, helpers)
    return seen


def _count(
    seen: Seen,
    reading: ThreadReadings,
    lookup: Lookup,
    window: Interval,
    helpers: Sequence[ThreadReadings],
) -> None:
    groups: dict[int, dict[str, int]] = {}
    for time_ns, number in zip(reading.sample_ns, reading.states, strict=False):
        if not window[0] <= time_ns < window[1]:
            continue
        state = STATES[number] if 0 <= number < len(STATES) else "blocked"
        at = lookup.index(time_ns)
        runnable = state == "running"
        if at < 0:
            seen.samples_outside += 1
            seen.runnable_outside += runnable
            continue
        seen.samples_inside += 1
        seen.runnable_inside += runnable
        if not runnable:
            if state == "futex":
                state = behind(helpers, time_ns)
            part = IN_FETCH.get(state, state)
            group = groups.setdefault(at, {})
            group[part] = group.get(part, 0) + 1
    seen.clusters += groups.values()


def behind(helpers: Iterable[ThreadReadings], time_ns: int) -> str:
    """What a thread that waits on a private lock or condition really waits for.

    A thread pool's owner sleeps on a condition while the pool works. The pool's threads say what
    for: the GIL when one of them stands in line for it, else what most of them are blocked in.
    With no helper busy, it is a lock.
    """
    doing: dict[str, int] = {}
    for helper in helpers:
        state = _state_at(helper, time_ns)
        if state:
            doing[state] = doing.get(state, 0) + 1
    if doing.get("gil"):
        return "gil"
    blocked = {state: doing[state] for state in _HELPERS_BLOCKED if state in doing}
    if blocked:
        return max(blocked, key=lambda state: blocked[state])
    return "other" if doing.get("running") else "lock"


def _state_at(reading: ThreadReadings, time_ns: int) -> str:
    """The sampled state nearest to an instant, if it lies within 100 ms (the slowest beat)."""
    times = reading.sample_ns
    at = bisect_left(times, time_ns)
    near = [i for i in (at - 1, at) if 0 <= i < min(len(times), len(reading.states))]
    if not near:
        return ""
    best = min(near, key=lambda i: abs(times[i] - time_ns))
    if abs(times[best] - time_ns) > 100_000_000:
        return ""
    number = reading.states[best]
    return STATES[number] if 0 <= number < len(STATES) else ""


def runs_of(reading: ThreadReadings, names: Mapping[str, str]) -> list[dict[str, int]]:
    """Blocked samples of a thread, by the part that `names` gives a state, in runs of one state: a
    run may be a single wait, so it is one draw. States without a name end a run."""
    runs: list[dict[str, int]] = []
    before = ""
    for number in reading.states:
        state = STATES[number] if 0 <= number < len(STATES) else "blocked"
        part = names.get(state, "")
        if part and state == before:
            runs[-1][part] += 1
        elif part:
            runs.append({part: 1})
        before = state
    return runs


def split_inside(fetch_ns: int, cpu_ns: int, seen: Seen | None) -> dict[str, tuple[int, int]]:
    """Parts of `fetch_ns`, of which `cpu_ns` were on a core: part -> (ns, standard error in ns).

    `seen` may cover only part of the fetches; its proportions stand for all. Without it the
    blocked time is "other".
    """
    cpu_ns = min(cpu_ns, fetch_ns)
    parts = {"cpu": (cpu_ns, 0)}
    left_ns = fetch_ns - cpu_ns
    if seen is not None and seen.fetch_ns > 0:
        queue_ns = min(left_ns, int(seen.queue_inside_ns / seen.fetch_ns * fetch_ns))
        parts["run_queue"] = (queue_ns, 0)
        left_ns -= queue_ns
    found = shares(seen.clusters) if seen is not None else {}
    return {**parts, **blocked_parts(left_ns, found)}


def blocked_parts(
    blocked_ns: int, found: Mapping[str, tuple[float, float]]
) -> dict[str, tuple[int, int]]:
    """Blocked time divided by sampled fractions; all of it "other" when nothing was sampled."""
    if not found:
        return {"other": (blocked_ns, 0)}
    return {
        part: (int(blocked_ns * fraction), int(blocked_ns * error))
        for part, (fraction, error) in found.items()
    }
