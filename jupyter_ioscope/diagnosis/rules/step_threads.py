"""The step computes with several native threads, and they stand in line behind the workers."""

from __future__ import annotations

from typing import NamedTuple

from jupyter_ioscope.diagnosis.cycles import Without
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.phases import Lookup, union
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.rules.oversubscribed import native
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.readings import STATES, ThreadReadings
from jupyter_ioscope.units import percent, seconds

# Below this part of the step's own CPU the threads beside it do next to nothing for it.
_LEAST_HELP = 0.3
# Of the time in which the step's threads could run, the part in line from which barriers matter.
_LEAST_QUEUED = 0.2
_LEAST_BUSY_WORKERS = 0.5  # threads of workers that run or want to, on average
_MOSTLY_IN_STEPS = 0.6
_RUNNING = STATES.index("running")


class Threads(NamedTuple):
    """The step's threads. CPU in ns over all steps; fractions of runnable time spent in line."""

    helpers: int
    own_cpu_ns: float
    helper_cpu_ns: float
    queued: float  # of the step's threads
    single_queued: float  # of one thread beside them: what a step on one thread would meet

    def after_ns(self, spinning: float) -> float:
        """All steps on one thread. At the end of a parallel piece a thread spins until the slowest
        is there: while it runs, another one stands in line with the probability `queued`, and
        `spinning` of that was spent so. The rest of the CPU is the work itself."""
        work = (self.own_cpu_ns + self.helper_cpu_ns) * (1 - spinning * self.queued)
        return work / max(0.02, 1 - self.single_queued)


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if the step used one thread. Spinning while others stand in line is
    no work; that all of it was spun is the best case, that half was is in `low`. Measured with two
    workers that compute and a small convolution on two cores: 60 + 60 ms of CPU became 18 ms."""
    if facts.alone or not facts.batches:
        return None
    found = _threads(facts)
    step_ns = float(sum(row.step_ns for row in facts.batches))
    if found is None or step_ns <= 0:
        return None
    best, worst = (max(0.0, 1 - found.after_ns(part) / step_ns) for part in (1.0, 0.5))
    gain = facts.gain(Without(step=best))
    low = facts.gain(Without(step=(best + worst) / 2)).low
    batches = len(facts.batches)
    return finding(
        facts,
        gain._replace(low=min(gain.share, low)),
        cause="thread_oversubscription",
        resource="run_queue",
        title="The step's own threads and the workers take the cores from each other",
        evidence=(
            f"A step of {seconds(step_ns / batches / 1e9)} used "
            f"{seconds(found.own_cpu_ns / batches / 1e9)} of CPU on its own thread and "
            f"{seconds(found.helper_cpu_ns / batches / 1e9)} on {found.helpers} native "
            f"thread{'' if found.helpers == 1 else 's'} beside it.",
            f"They stood in line for a core {percent(found.queued)} of the time in which they "
            "could run, and at the end of every parallel piece all wait for the last one.",
            _words.taken_line(facts),
        ),
        advice="Let a small step use one thread while workers are busy: torch.set_num_threads(1) "
        "before the loop (workers are not changed by it). Or fewer workers, so that the step's "
        "threads find their cores free.",
        toggles=("fewer_workers",),
        refines=("not_loader_bound", "thread_oversubscription"),
    )


def _threads(facts: Facts) -> Threads | None:
    """None where the step has no such threads, they hardly stand in line, or workers are idle."""
    facts.need_states()
    rows = facts.profile.threads
    steps = Lookup(union((row.wait_end_ns, row.step_end_ns) for row in facts.batches))
    helpers = [
        row
        for row in rows
        if native(row) and row.worker < 0 and row.pid == facts.profile.pid and row.run_ns
        if _in_steps(row, steps) >= _MOSTLY_IN_STEPS
    ]
    own = sum(row.step_cpu_ns for row in facts.batches)
    cpu = float(sum(row.run_ns for row in helpers))
    workers = [row for row in rows if row.role == "worker"]
    busy = sum(row.run_ns + row.run_queue_ns for row in workers) / facts.loop.wall_ns
    if not helpers or cpu < _LEAST_HELP * own or busy < _LEAST_BUSY_WORKERS:
        return None
    queued = _queued([*helpers, *(row for row in rows if row.role == "consumer")])
    if queued < _LEAST_QUEUED:
        return None
    return Threads(len(helpers), own, cpu, queued, min(queued, _queued(workers)))


def _in_steps(row: ThreadReadings, steps: Lookup) -> float:
    """Of the instants at which a thread could run, the part inside steps."""
    seen = [time_ns for time_ns, state in zip(row.sample_ns, row.states, strict=False)
            if state == _RUNNING]  # fmt: skip
    return sum(steps.index(time_ns) >= 0 for time_ns in seen) / len(seen) if seen else 0.0


def _queued(rows: list[ThreadReadings]) -> float:
    runnable = sum(row.run_ns + row.run_queue_ns for row in rows)
    return sum(row.run_queue_ns for row in rows) / runnable if runnable else 0.0


RULE = Rule("step_threads", judge)
