"""Where the time of the threads went that only hand batches on: feeders and pin-memory threads."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_ioscope.diagnosis.inside import runs_of
from jupyter_ioscope.diagnosis.parts import Parts, thread_waits
from jupyter_ioscope.diagnosis.spread import shares
from jupyter_ioscope.model.diagnosis import ThreadWaits
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, ThreadReadings

# State of such a thread while it is blocked -> part of its time. Both wait for their next batch in
# a condition or a poll. Blocked in a pipe, a feeder has a batch that the reader does not take; a
# pin-memory thread reads, so that is its waiting.
_FEEDER = {
    "futex": "idle",
    "poll": "idle",
    "pipe": "hand_over",
    "network": "hand_over",  # a socket pair instead of a pipe
    "gil": "gil",
    "lock": "lock",  # the workers' common write lock
    "disk": "disk",
    "page_fault": "page_fault",
    "sleep": "sleep",
    "wait_child": "process",
    "blocked": "other",
}
_PIN_MEMORY = {**_FEEDER, "pipe": "idle", "network": "idle"}
_STATE_PARTS = {"feeder": _FEEDER, "pin_memory": _PIN_MEMORY}


def other_waits(profile: Profile) -> tuple[ThreadWaits, ...]:
    """One row for the feeder of every worker (lives of a worker started again add up), and one for
    the pin-memory threads. What they do on a core is handing over: it is part `cpu`, blocked time
    is divided by sampled states."""
    groups: dict[tuple[str, int], list[ThreadReadings]] = {}
    for row in profile.threads:
        if row.role in _STATE_PARTS:
            worker = row.worker if row.role == "feeder" else -1
            groups.setdefault((row.role, worker), []).append(row)
    return tuple(_row(role, worker, groups[role, worker]) for role, worker in sorted(groups))


def _row(role: str, worker: int, readings: Sequence[ThreadReadings]) -> ThreadWaits:
    parts = Parts()
    wall_ns = blocked_ns = 0
    clusters: list[dict[str, int]] = []
    for row in readings:
        length_ns = max(0, row.last_ns - row.first_ns)
        wall_ns += length_ns
        if row.exact:
            run_ns = min(row.run_ns, length_ns)
            queue_ns = min(row.run_queue_ns, length_ns - run_ns)
            parts.add("cpu", run_ns)
            parts.add("run_queue", queue_ns)
            blocked_ns += length_ns - run_ns - queue_ns
        else:
            running = row.states.count(STATES.index("running"))
            run_ns = length_ns * running // len(row.states) if row.states else 0
            parts.add("cpu", run_ns)
            blocked_ns += length_ns - run_ns
        clusters += runs_of(row, _STATE_PARTS[role])
    found = shares(clusters)
    if not found:
        parts.add("other", blocked_ns)
    for name, (fraction, error) in found.items():
        parts.add(name, int(blocked_ns * fraction), blocked_ns * error)
    return thread_waits(role, worker, readings[-1].pid, wall_ns, parts)
