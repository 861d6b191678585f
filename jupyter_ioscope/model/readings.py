"""What the sampler saw: thread states, exact thread times, series of counters, stacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

# What a sampled thread was doing. `waits` turns them into parts of wall time, using the phase.
#   running    runnable: on a core or in the run queue (schedstat tells the two apart)
#   disk       uninterruptible sleep inside a file system call
#   page_fault uninterruptible sleep outside any system call
#   gil        futex inside the interpreter's own data
#   lock       a futex shared between processes, flock or fcntl
#   futex      a private futex that is not the GIL: a lock or a condition of this process
#   network    blocked on a socket
#   poll       poll, select, epoll: only the phase tells what for
#   pipe       reading or writing a pipe or a queue
#   sleep      nanosleep
#   wait_child waiting for a child process
#   blocked    blocked, reason not visible (no right to look)
STATES = (
    "running",
    "disk",
    "page_fault",
    "gil",
    "lock",
    "futex",
    "network",
    "poll",
    "pipe",
    "sleep",
    "wait_child",
    "blocked",
)

ROLES = ("consumer", "worker", "feeder", "pin_memory", "other")


@dataclass(frozen=True)
class ThreadReadings:
    """One thread while the profile ran.

    `run_ns` and `run_queue_ns` are exact (schedstat) between `first_ns` and `last_ns`; what is
    left of that stretch, the thread was blocked. `sample_ns` and `states` are the sampled
    instants and what the thread was doing (indices into `STATES`), equally long.
    `role` is one of `ROLES`; `worker` is -1 unless the thread lives in a worker process.
    `exact` is False where schedstat was not readable.
    """

    pid: int
    tid: int
    name: str
    role: str
    worker: int
    first_ns: int
    last_ns: int
    run_ns: int
    run_queue_ns: int
    major_faults: int
    exact: bool = True
    sample_ns: tuple[int, ...] = ()
    states: tuple[int, ...] = ()


@dataclass(frozen=True)
class Series:
    """Readings of one quantity over time. `kind` is "gauge" or "cumulative"; lengths are equal.

    `scope` is "tree" (this process and all below it), "machine", "cgroup" or "device".
    """

    name: str
    unit: str  # "bytes", "ns", "fraction", "count", "us"
    kind: str
    scope: str
    time_ns: tuple[int, ...]
    values: tuple[float, ...]

    def total(self) -> float:
        """Growth of a cumulative series over the profile."""
        return self.values[-1] - self.values[0] if self.values else 0.0

    def peak(self) -> float:
        return max(self.values, default=0.0)

    def mean(self) -> float:
        return sum(self.values) / len(self.values) if self.values else 0.0


class Frame(NamedTuple):
    """One function in a stack. `cell` is the execution count when it was defined in a cell.

    `file` is a full path, or `In [n]` for code of a cell. `line` is 0 where unknown.
    """

    name: str
    file: str
    line: int
    cell: int = 0


class Stack(NamedTuple):
    """`count` samples of one thread with the same frames, outermost first (see `Stacks.frames`)."""

    role: str
    worker: int
    pid: int
    thread: str
    frames: tuple[int, ...]
    count: int  # type: ignore[assignment]  # the field shadows tuple.count, which nobody needs


@dataclass(frozen=True)
class Stacks:
    """All stack samples of a profile. `source` is "py-spy" or "in-process".

    `rate_hz` is the rate per thread that was asked for; `blocked_too` says whether threads
    that were not running were sampled as well. Of a long profile later samples were taken less
    often and count for more: `certainty` times the counts is the number of equal samples that
    would say as much (Kish's effective sample size, over the sum of the weights).
    """

    source: str
    rate_hz: float
    blocked_too: bool
    frames: tuple[Frame, ...]
    stacks: tuple[Stack, ...]
    certainty: float = 1.0

    def samples(self) -> int:
        """Counts of all stacks, in periods of `rate_hz`."""
        return sum(stack.count for stack in self.stacks)
