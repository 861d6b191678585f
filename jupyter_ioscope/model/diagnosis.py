"""What a diagnosis concluded: parts of wall time, ceilings, findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from jupyter_ioscope.model.profile import Gap

# Parts of a thread's wall time, in the order views draw them.
#   step       the consumer's own time with the batch
#   cpu        on a core, for the loader
#   run_queue  runnable, waiting for a core
#   disk, page_fault, network, sleep   blocked inside a fetch
#   gil, lock  waiting for the interpreter lock; for another lock
#   hand_over  the way from worker to consumer: pickle, queue, shared memory, pin
#   start_up   creating workers, first index, before the first fetch
#   idle       nothing to do: a worker without a task, a consumer whose batch is not ready
#   other      inside a fetch, blocked, reason not visible
#   rest       not attributed
PARTS = (
    "step",
    "cpu",
    "run_queue",
    "disk",
    "page_fault",
    "network",
    "sleep",
    "gil",
    "lock",
    "hand_over",
    "start_up",
    "idle",
    "other",
    "rest",
)

# Values of Finding.resource.
RESOURCES = (
    "consumer",
    "worker_cpu",
    "main_cpu",
    "run_queue",
    "disk",
    "page_fault",
    "network",
    "sleep",
    "gil",
    "lock",
    "hand_over",
    "start_up",
    "memory",
    "none",
)


class Part(NamedTuple):
    """One part of a thread's wall time. `error_ns` is one standard error (0 where exact)."""

    name: str
    time_ns: int
    error_ns: int


@dataclass(frozen=True)
class ThreadWaits:
    """Where one thread's wall time went. The parts sum to `wall_ns` within rounding."""

    who: str  # "consumer" or "worker"
    worker: int  # -1 for the consumer
    pid: int
    wall_ns: int
    parts: tuple[Part, ...]

    def part_ns(self, name: str) -> int:
        return next((part.time_ns for part in self.parts if part.name == name), 0)

    def fraction(self, name: str) -> float:
        return self.part_ns(name) / self.wall_ns if self.wall_ns else 0.0


@dataclass(frozen=True)
class Waits:
    """Where the time went, for the consumer and every worker."""

    consumer: ThreadWaits | None
    workers: tuple[ThreadWaits, ...]
    wait_fraction: float  # of the loop's wall time, consumer blocked in next() or iter()
    wait_fraction_error: float


@dataclass(frozen=True)
class Throughput:
    """Steady throughput: after the start-up of each epoch. `error` is one standard error."""

    samples_per_s: float
    error: float
    batches_per_s: float
    first_batch_s: float
    batches: int
    samples: int


@dataclass(frozen=True)
class Ceiling:
    """The throughput one resource would allow if nothing else limited."""

    resource: str  # "worker_pool", "cpu", "storage", "hand_over", "consumer", "gil"
    label: str
    samples_per_s: float
    low: float
    high: float
    how: str  # one sentence: how the number came about


@dataclass(frozen=True)
class Finding:
    """One judgement. `share` is the part of the loop's wall time that removing the cause would
    free (0-1), with a 95 % interval; `cost_s` is the same in seconds of this profile. What passes
    before the loop is a part of the time from the start of the profile to the end of the loop."""

    cause: str
    resource: str
    title: str
    share: float
    low: float
    high: float
    cost_s: float
    evidence: tuple[str, ...]
    advice: str
    toggles: tuple[str, ...] = ()
    where: str = ""  # function, file and line that the time was spent in, where known
    refines: tuple[str, ...] = ()  # more general causes that this one says more exactly


class Unknown(NamedTuple):
    """A rule that could not be decided."""

    rule: str
    reason: str


@dataclass(frozen=True)
class Diagnosis:
    """All judgements about one profile, ranked by what removing each cause would gain.

    `separated` is False when the first two causes cannot be told apart; `would_separate` then
    says what could. `margin` is the first share minus the second.
    """

    headline: str
    detail: str
    findings: tuple[Finding, ...]
    separated: bool
    would_separate: str
    margin: float
    waits: Waits
    throughput: Throughput | None
    ceilings: tuple[Ceiling, ...]
    unknown: tuple[Unknown, ...]
    not_measured: tuple[Gap, ...]
