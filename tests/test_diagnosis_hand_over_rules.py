"""Rules about what workers pay for: the hand-over of batches, and crowded cores."""

from __future__ import annotations

import dataclasses

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES
from tests import builders
from tests.seen_stacks import with_states


def found(profile: Profile, cause: str) -> Finding | None:
    return next((row for row in diagnose(profile).findings if row.cause == cause), None)


# -- hand-over ------------------------------------------------------------------------------------


def tiny(**settings: object) -> Profile:
    return builders.profile(
        2, fetch_ms=0.2, step_ms=0.05, main_ms=1.0, delay_ms=0.4, batches=400, batch_size=32,
        tensors=1, batch_bytes=2_000, **settings,  # type: ignore[arg-type]
    )  # fmt: skip


def test_workers_for_data_that_is_there_already_cost_more_than_they_bring() -> None:
    first = diagnose(tiny()).findings[0]
    assert first.cause == "workers_overhead"
    assert "num_workers=0" in first.advice


def test_hand_over_that_waits_for_other_programs_is_not_the_loaders_own() -> None:
    settings = {
        "fetch_ms": 2.0,
        "step_ms": 0.5,
        "main_ms": 0.3,
        "delay_ms": 9.0,
        "tensors": 1,
        "batches": 600,
    }
    quiet = builders.profile(2, cpus=2, **settings)  # type: ignore[arg-type]
    busy = builders.profile(2, cpus=2, others_cores=1.8, **settings)  # type: ignore[arg-type]
    shares = [
        sum(row.share for row in diagnose(item).findings if row.resource == "hand_over")
        for item in (quiet, busy)
    ]
    assert shares[0] > 0.4
    assert shares[1] < 0.7 * shares[0]


def test_small_batches_that_workers_pay_for_are_to_be_larger_not_made_alone() -> None:
    profile = builders.profile(
        8, fetch_ms=6, step_ms=0.1, main_ms=1.5, cpus=8, tensors=1, batch_bytes=4_000, batches=400
    )
    row = found(profile, "workers_overhead")
    assert row is not None
    assert "Make batches larger" in row.advice
    assert "no_workers" not in row.toggles, "the advice is to keep them"


def taking_over(state: str) -> Profile:
    """Batches that take long to take over, with the consumer in one state all the time."""
    made = builders.profile(2, fetch_ms=2, main_ms=8, step_ms=2, tensors=1)
    number = STATES.index(state)
    threads = tuple(
        dataclasses.replace(row, states=(number,) * len(row.sample_ns))
        if row.role == "consumer"
        else row
        for row in made.threads
    )
    return builders.without(made, threads=threads)


def test_hand_over_that_waits_for_the_gil_is_not_the_batches_fault() -> None:
    causes = [row.cause for row in diagnose(taking_over("gil")).findings]
    assert causes[0] == "gil_bound_threads"
    assert "workers_overhead" not in causes
    assert diagnose(taking_over("running")).findings[0].cause == "workers_overhead"


def test_a_step_that_waits_for_the_gil_is_told_from_a_step_that_works() -> None:
    value = builders.profile(0, fetch_ms=5, step_ms=20)
    half = [(row.wait_end_ns, (row.wait_end_ns + row.step_end_ns) // 2) for row in value.batches]
    first = diagnose(with_states(value, half, "gil")).findings[0]
    assert first.cause == "gil_bound_threads"
    assert first.share == pytest.approx(0.4, abs=0.1)
    assert "in the steps" in first.evidence[0]
    assert diagnose(with_states(value, half, "sleep")).findings[0].cause == "not_loader_bound"


# -- crowding -------------------------------------------------------------------------------------


def with_helpers(profile: Profile, worker: int, count: int, name: str = "python") -> Profile:
    """`profile` with native threads beside a worker's or the consumer's own, always in line."""
    role = "consumer" if worker < 0 else "worker"
    own = next(row for row in profile.threads if row.role == role and row.worker == worker)
    length = own.last_ns - own.first_ns
    rows = tuple(
        dataclasses.replace(
            own, tid=90_000 + number, role="other", name=name, run_ns=length // 5,
            run_queue_ns=4 * length // 5, sample_ns=(), states=(),
        )
        for number in range(count)
    )  # fmt: skip
    return builders.without(profile, threads=(*profile.threads, *rows))


CROWDED = {"cpu": 0.3, "run_queue": 0.7}


def test_native_threads_inside_workers_crowd_the_cores() -> None:
    profile = builders.profile(2, cpus=2, states=CROWDED)
    row = found(with_helpers(profile, 0, 8), "thread_oversubscription")
    assert row is not None
    assert "set_num_threads(1)" in row.advice


def test_threads_that_only_carry_batches_are_no_pool() -> None:
    profile = with_helpers(builders.profile(2, cpus=2, states=CROWDED), 0, 8, "Thread-1 (_serve)")
    assert found(profile, "thread_oversubscription") is None


def test_native_threads_of_the_main_process_crowd_the_step() -> None:
    profile = builders.profile(2, cpus=2, fetch_ms=3, step_ms=30)
    rows = tuple(
        dataclasses.replace(row, run_queue_ns=2 * row.run_ns) if row.role == "consumer" else row
        for row in profile.threads
    )
    crowded = with_helpers(builders.without(profile, threads=rows), -1, 6)
    row = found(crowded, "thread_oversubscription")
    assert row is not None
    assert "this process" in row.title
    assert found(profile, "thread_oversubscription") is None


def test_a_worker_that_waits_for_its_own_threads_stands_in_no_line_for_a_lock() -> None:
    states = {"cpu": 0.1, "run_queue": 0.4, "lock": 0.5}
    crowded = with_helpers(builders.profile(2, cpus=2, states=states, step_ms=0.5), 0, 8)
    causes = [row.cause for row in diagnose(crowded).findings]
    assert causes[0] == "thread_oversubscription"
    assert "lock_contention" not in causes
    alone = builders.profile(2, cpus=2, states=states, step_ms=0.5)
    assert diagnose(alone).findings[0].cause == "lock_contention"
