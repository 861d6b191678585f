"""A step whose own native threads stand in line behind busy workers, and what looks like it."""

from __future__ import annotations

import dataclasses

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, ThreadReadings
from tests import builders

RUNNING, FUTEX = STATES.index("running"), STATES.index("futex")
BUSY = {"cpu": 0.5, "run_queue": 0.5}


def loop(states: dict[str, float], fetch_ms: float = 30.0) -> Profile:
    return builders.profile(
        2, states=states, fetch_ms=fetch_ms, step_ms=30.0, cpus=2, batches=80, fetch_cv=0.05
    )


def with_helper(made: Profile, queued: float, *, run: float = 1.0, always: bool = False) -> Profile:
    """`made` with a native thread that is runnable during steps (or `always`), in line for a part
    `queued` of that, as the loop's own thread is; its CPU is `run` times that thread's."""
    spans = [(row.wait_end_ns, row.step_end_ns) for row in made.batches]
    runnable_ns = sum(end - start for start, end in spans)
    own_cpu_ns = int(runnable_ns * (1 - queued))
    consumer = next(row for row in made.threads if row.role == "consumer")
    states = tuple(
        RUNNING if always or any(a <= when < b for a, b in spans) else FUTEX
        for when in consumer.sample_ns
    )
    queue_ns = int(runnable_ns * queued)
    own = dataclasses.replace(consumer, run_ns=own_cpu_ns, run_queue_ns=queue_ns)
    helper: ThreadReadings = dataclasses.replace(
        own,
        tid=consumer.tid + 99,
        name="python",
        role="other",
        states=states,
        run_ns=int(own_cpu_ns * run),
    )
    batches = tuple(
        row._replace(step_cpu_ns=own_cpu_ns // len(made.batches)) for row in made.batches
    )
    others = tuple(row for row in made.threads if row.role != "consumer")
    return builders.without(made, threads=(own, helper, *others), batches=batches)


def found(made: Profile) -> Finding | None:
    rows = diagnose(made).findings
    return next((row for row in rows if row.title.startswith("The step's own threads")), None)


def test_threads_of_a_small_step_that_fight_with_the_workers() -> None:
    made = with_helper(loop(BUSY), queued=0.6)
    row = found(made)
    assert row is not None
    assert diagnose(made).findings[0] == row
    assert (row.cause, row.resource) == ("thread_oversubscription", "run_queue")
    assert "on 1 native thread beside it" in row.evidence[0]
    assert "set_num_threads(1)" in row.advice
    assert row.low < row.share <= row.high


@pytest.mark.parametrize(
    "made",
    [
        loop(BUSY),  # one thread
        with_helper(loop(BUSY), queued=0.05),  # truly parallel: they find their cores
        with_helper(loop(BUSY), queued=0.6, run=0.05),  # a device computes, a thread looks on
        with_helper(loop({"cpu": 0.02, "sleep": 0.98}, 10.0), queued=0.6),  # workers hardly run
        with_helper(loop(BUSY), queued=0.6, always=True, run=0.1),  # it has its own work
    ],
)
def test_steps_whose_threads_do_no_harm(made: Profile) -> None:
    assert found(made) is None


def test_nothing_is_said_of_threads_without_the_sampler() -> None:
    made = builders.without(with_helper(loop(BUSY), queued=0.6), threads=())
    assert found(made) is None
