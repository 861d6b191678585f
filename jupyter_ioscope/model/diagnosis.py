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
#   process    inside a fetch, for another process: a pipe or a child
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
    "process",
    "gil",
    "lock",
    "hand_over",
    "start_up",
    "idle",
    "other",
    "rest",
)

# Parts that a thread waits for outside of itself, so that others can work meanwhile; and all that
# it may be blocked in.
WAITS = ("disk", "page_fault", "network", "sleep", "process")
BLOCKED = (*WAITS, "gil", "lock", "other")

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
    "process",
    "gil",
    "lock",
    "hand_over",
    "start_up",
    "memory",
    "none",
)


# Values of Finding.harm: what a cause does beside taking time, the worst first.
#   run     it hangs or ends the run
#   data    the samples are not what the user believes they are
#   memory  it takes so much memory that the run, or others on the machine, are at risk
HARMS = ("run", "data", "memory")


class Part(NamedTuple):
    """One part of a thread's wall time. `error_ns` is one standard error (0 where exact)."""

    name: str
    time_ns: int
    error_ns: int


@dataclass(frozen=True)
class ThreadWaits:
    """Where one thread's wall time went. The parts sum to `wall_ns` within rounding."""

    who: str  # "consumer", "worker", "feeder" or "pin_memory"
    worker: int  # -1 outside workers
    pid: int
    wall_ns: int
    parts: tuple[Part, ...]

    def part_ns(self, name: str) -> int:
        return next((part.time_ns for part in self.parts if part.name == name), 0)

    def fraction(self, name: str) -> float:
        return self.part_ns(name) / self.wall_ns if self.wall_ns else 0.0


# What a worker is in the middle of, in the order it happens to a batch.
#   start_up    before the first fetch
#   index_wait  no task: what to fetch next has not come
#   fetch       getting the items
#   collate     joining them
#   put         on a core to hand the batch on
WORKER_PHASES = ("start_up", "index_wait", "fetch", "collate", "put")


class Phase(NamedTuple):
    """One phase of all threads that fetch. `cpu_ns` of it was on a core; `error_ns` is one
    standard error of `cpu_ns` (of the sampled division between fetch and collate; 0 where exact).
    """

    name: str
    time_ns: int
    cpu_ns: int
    error_ns: int


@dataclass(frozen=True)
class Waits:
    """Where the time went, for the consumer and every worker.

    `others` are the threads that only hand batches on: one feeder a worker, and the thread that
    pins memory. `phases` divide the time of the fetching threads and sum to their wall time.
    """

    consumer: ThreadWaits | None
    workers: tuple[ThreadWaits, ...]
    wait_fraction: float  # of the loop's wall time, consumer blocked in next() or iter()
    wait_fraction_error: float
    others: tuple[ThreadWaits, ...] = ()
    phases: tuple[Phase, ...] = ()


@dataclass(frozen=True)
class Demand:
    """Who wanted the cores, as mean numbers of cores over the profile; None where not measured.

    `waiting` are threads of this loop that stood in the run queue; `throttled_s` is how long the
    cgroup's quota held all of its threads back, added up over cores.
    """

    cores: float  # that may be used: affinity and quota honoured
    own: float | None
    others: float | None
    waiting: float | None
    throttled_s: float | None
    throttled_periods: int | None


class Tier(NamedTuple):
    """How much could be seen: `Profile.tier`, its name in words, and what that means."""

    name: str
    title: str
    text: str


NO_TIER = Tier("", "", "")


@dataclass(frozen=True)
class Throughput:
    """Steady throughput: after the start-up of each epoch. `error` is one standard error."""

    samples_per_s: float
    error: float
    batches_per_s: float
    first_batch_s: float
    batches: int
    samples: int


# Values of Ceiling.resource.
#   consumer           the step alone
#   process            all that the loop's own thread does for a batch, one after the other
#   worker_pool        the fetches, over the number of workers
#   order              the same, with batches waiting for the ones before them
#   cpu, cpu_left      CPU a batch, over the cores that may be used; over those others left
#   storage            time blocked on the disk, with as many readers as there were
#   storage_bandwidth  bytes from the device, over what it can give
#   network            time blocked on sockets, with as many readers as there were
#   hand_over          taking over a batch, by the loop's process or its pinning thread
#   feeder             handing a batch on, by the workers' feeder threads
#   gil                Python work of all threads of one process
#   start_up           starting each epoch, then its batches
CEILINGS = (
    "consumer",
    "process",
    "worker_pool",
    "order",
    "cpu",
    "cpu_left",
    "storage",
    "storage_bandwidth",
    "network",
    "hand_over",
    "feeder",
    "gil",
    "start_up",
)


@dataclass(frozen=True)
class Ceiling:
    """The throughput one resource would allow if nothing else limited."""

    resource: str  # one of CEILINGS
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
    harm: str = ""  # one of HARMS: it then comes before all that only take time


# Causes of outliers, by what was recorded at that moment.
#   gc          the garbage collector ran in the process
#   disk, page_fault, network, sleep, process, gil, lock   the thread was seen blocked so
#   cpu         it computed for longer than usual
#   run_queue   it waited for a core
#   cores_taken other programs kept the cores busy
#   throttled   the cgroup's quota held the process back
#   written     the tree wrote files meanwhile
#   opened      a file was opened about as often as the loop stalled (stalls only)
#   read        more than usual came from the device
#   pressure    threads of this machine stood still for the disk or for memory
#   larger      the batch was larger than usual
#   other_fetch its worker was late: a slow fetch came before it
#   hand_over   it was ready and on its way
#   start       workers were starting: the first batches of an epoch
#   stopped     nothing ran at all, the profiler neither
OUTLIER_CAUSES = (
    "gc", "disk", "page_fault", "network", "sleep", "process", "gil", "lock", "cpu", "run_queue",
    "cores_taken", "throttled", "written", "opened", "read", "pressure", "larger", "other_fetch",
    "hand_over", "start", "stopped",
)  # fmt: skip


class Likely(NamedTuple):
    """A likely cause of an outlier. `fraction` (0-1) of its excess fits this cause; what was only
    going on at the same time, without a length of its own, counts at most half."""

    cause: str
    fraction: float
    text: str


@dataclass(frozen=True)
class Outlier:
    """A wait, fetch or step that took far longer than those around it.

    `phase` is "wait", "fetch" or "step"; `score` the distance from the rolling median in robust
    standard deviations; `lost_ns` what the loop lost (0 for a slow fetch that nobody waited for).
    `stall` is the number of its `Stall` in `Outliers.stalls`, -1 without. No cause: unknown.
    """

    phase: str
    batch: int  # -1 where the batch of a fetch is unknown
    worker: int
    start_ns: int
    end_ns: int
    usual_ns: int
    score: float
    lost_ns: int
    causes: tuple[Likely, ...] = ()
    stall: int = -1

    @property
    def time_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True)
class Stall:
    """Outliers that belong together by their spacing.

    `kind` is "epoch_start" (the first batches of epochs) or "periodic"; `every` is the spacing in
    batches, `every_s` in seconds. `lost_ns` is what all of them cost the loop.
    """

    kind: str
    phase: str
    every: float
    every_s: float
    count: int
    lost_ns: int
    causes: tuple[Likely, ...] = ()


@dataclass(frozen=True)
class Outliers:
    """Batches that took far longer than their neighbours: the worst first, and the count of all."""

    worst: tuple[Outlier, ...] = ()
    count: int = 0
    lost_ns: int = 0  # what all of them cost the loop
    stalls: tuple[Stall, ...] = ()


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
    outliers: Outliers = Outliers()
    demand: Demand | None = None
    tier: Tier = NO_TIER
