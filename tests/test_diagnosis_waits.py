"""Parts of wall time: they add up, and they are what the simulated threads did."""

from __future__ import annotations

import random

import pytest

from jupyter_ioscope.diagnosis.waits import waits_of
from jupyter_ioscope.model.diagnosis import PARTS, ThreadWaits
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, ThreadReadings
from tests import builders

BLOCKED = ("disk", "page_fault", "network", "sleep", "gil", "lock", "other")


def rows(profile: Profile) -> list[ThreadWaits]:
    waits = waits_of(profile)
    return [row for row in (waits.consumer, *waits.workers) if row is not None]


def random_profile(seed: int) -> Profile:
    rng = random.Random(seed)
    kinds = rng.sample(BLOCKED, 2)
    cpu = rng.uniform(0.05, 0.9)
    first = rng.uniform(0, 1 - cpu)
    return builders.profile(
        rng.randrange(0, 4),
        fetch_ms=rng.uniform(1, 40),
        step_ms=rng.uniform(0.1, 20),
        states={"cpu": cpu, kinds[0]: first, kinds[1]: 1 - cpu - first},
        batches=rng.randrange(1, 60),
        epochs=rng.randrange(1, 4),
        persistent=rng.random() < 0.3,
        tier=rng.choice(("full", "full", "no_ptrace", "in_process")),
        seen_late_ms=rng.choice((5, 60, 300)),
        seed=seed,
    )


@pytest.mark.parametrize("seed", range(40))
def test_parts_add_up_to_the_wall_time(seed: int) -> None:
    profile = random_profile(seed)
    for row in rows(profile):
        assert sum(part.time_ns for part in row.parts) == pytest.approx(row.wall_ns, rel=0.02)
        assert all(part.time_ns >= 0 for part in row.parts)
        assert [p.name for p in row.parts] == sorted((p.name for p in row.parts), key=PARTS.index)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("workers", [0, 2])
def test_blocked_time_is_split_as_the_threads_really_were(workers: int, seed: int) -> None:
    """Each part lies within four of its own standard errors."""
    states = {"cpu": 0.2, "run_queue": 0.1, "disk": 0.4, "lock": 0.3}
    profile = builders.profile(
        workers, states=states, batches=150, step_ms=1.0, fetch_cv=0.3, seed=seed
    )
    waits = waits_of(profile)
    fetching = waits.workers or ([waits.consumer] if waits.consumer else [])
    fetch_ns = sum(row.fetch_ns for row in profile.fetches)
    for name, fraction in states.items():
        found = [p for row in fetching for p in row.parts if p.name == name]
        time_ns = sum(p.time_ns for p in found)
        error_ns = sum(p.error_ns**2 for p in found) ** 0.5
        if name in ("cpu", "run_queue"):
            assert time_ns == pytest.approx(fraction * fetch_ns, rel=0.1)
        else:
            assert error_ns > 0
            assert abs(time_ns - fraction * fetch_ns) < 4 * error_ns


def test_a_waiting_consumer_is_idle_until_its_batch_is_fetched() -> None:
    profile = builders.profile(2, fetch_ms=20, step_ms=1, main_ms=0.5)
    main = waits_of(profile).consumer
    assert main is not None
    assert main.fraction("idle") > 0.7
    assert main.part_ns("hand_over") >= 0.5e6 * len(profile.batches)
    assert main.part_ns("step") == pytest.approx(1e6 * len(profile.batches), rel=0.02)


def test_time_to_start_workers_is_start_up() -> None:
    slow = builders.profile(2, start_ms=200, entry_ms=50, batches=20)
    main = waits_of(slow).consumer
    assert main is not None
    assert main.part_ns("start_up") == pytest.approx(250e6, rel=0.1)


def test_without_the_sampler_blocked_time_has_no_name_but_is_not_lost() -> None:
    profile = builders.profile(2, cpu_fraction=0.3, disk_fraction=0.7, tier="in_process")
    for row in waits_of(profile).workers:
        assert row.fraction("other") == pytest.approx(0.68, abs=0.06)
        assert row.fraction("cpu") == pytest.approx(0.29, abs=0.04)
        assert row.part_ns("disk") == 0


def test_workers_from_before_the_profile_are_described_by_the_sampler_alone() -> None:
    profile = builders.profile(2, cpu_fraction=0.3, disk_fraction=0.7, batches=150)
    for row in waits_of(builders.with_workers_before_profile(profile)).workers:
        assert row.fraction("disk") == pytest.approx(0.68, abs=0.15)
        assert row.fraction("cpu") == pytest.approx(0.3, abs=0.05)


def test_a_worker_started_again_each_epoch_is_one_row() -> None:
    profile = builders.profile(3, epochs=4, batches=30)
    waits = waits_of(profile)
    assert [row.worker for row in waits.workers] == [0, 1, 2]
    lives = [row for row in profile.workers if row.worker == 0]
    assert len(lives) == 4
    assert waits.workers[0].wall_ns == pytest.approx(
        sum(row.left_ns - row.entered_ns for row in lives), rel=0.02
    )


def test_a_killed_worker_lives_until_its_last_reading() -> None:
    profile = builders.with_killed_worker(builders.profile(2))
    assert all(row.wall_ns > 0 for row in waits_of(profile).workers)


def test_waiting_for_a_thread_pool_is_named_by_what_the_pool_does() -> None:
    """A worker that sleeps on a condition while its threads stand in line for the GIL."""
    base = builders.profile(1, states={"cpu": 0.2, "lock": 0.8}, batches=150)
    futex, gil = STATES.index("futex"), STATES.index("gil")
    changed: list[ThreadReadings] = []
    for row in base.threads:
        if row.role != "worker":
            changed.append(row)
            continue
        states = tuple(futex if STATES[s] == "lock" else s for s in row.states)
        changed.append(builders.replaced(row, states=states))
        changed.append(
            builders.replaced(
                row, tid=row.tid + 1, role="other", states=(gil,) * len(row.states), run_ns=0
            )
        )
    worker = waits_of(builders.without(base, threads=tuple(changed))).workers[0]
    assert worker.fraction("gil") > 0.6
    assert worker.part_ns("lock") == 0


def test_loops_inside_one_another_wait_once() -> None:
    """Two loaders taken in turn (zip): the steps of one hold the waits of the other."""
    base = builders.profile(0, batches=30)
    shifted = [
        row._replace(batch=row.batch + 30, epoch=1, loader=1, task=row.task) for row in base.batches
    ]
    both = builders.without(base, batches=(*base.batches, *shifted))
    main = waits_of(both).consumer
    assert main is not None
    assert sum(part.time_ns for part in main.parts) == pytest.approx(main.wall_ns, rel=0.02)


def test_wait_fraction_is_waiting_over_the_whole_loop() -> None:
    profile = builders.profile(2, fetch_ms=2, step_ms=8, batches=100, start_ms=0, entry_ms=0)
    waits = waits_of(profile)
    assert waits.wait_fraction == pytest.approx(0.04, abs=0.02)
    assert 0 < waits.wait_fraction_error < 0.05


# -- threads that only hand batches on, and phases ----------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_phases_and_other_threads_add_up_too(seed: int) -> None:
    profile = random_profile(seed)
    waits = waits_of(profile)
    for row in waits.others:
        assert sum(part.time_ns for part in row.parts) == pytest.approx(row.wall_ns, rel=0.02)
    if waits.workers and profile.fetches:
        whole = sum(row.wall_ns for row in waits.workers)
        assert sum(phase.time_ns for phase in waits.phases) == pytest.approx(whole, rel=0.02)
    assert all(0 <= phase.cpu_ns <= phase.time_ns for phase in waits.phases)


def test_phases_are_what_the_workers_were_in_the_middle_of() -> None:
    profile = builders.profile(
        2, fetch_ms=20, collate_fraction=0.25, step_ms=15, put_ms=1.0, batches=200, cpu_fraction=1.0
    )
    waits = waits_of(profile)
    found = {phase.name: phase for phase in waits.phases}
    fetch_ns = sum(row.fetch_ns for row in profile.fetches)
    assert found["fetch"].time_ns == pytest.approx(0.75 * fetch_ns, rel=0.01)
    assert found["collate"].time_ns == pytest.approx(0.25 * fetch_ns, rel=0.01)
    assert found["put"].time_ns == pytest.approx(200e6, rel=0.2)
    assert found["index_wait"].time_ns > 0.2 * sum(row.wall_ns for row in waits.workers)
    cpu_ns = found["fetch"].cpu_ns + found["collate"].cpu_ns
    assert cpu_ns == pytest.approx(fetch_ns, rel=0.02)
    assert found["collate"].cpu_ns == pytest.approx(0.25 * fetch_ns, rel=0.25)


def test_cpu_goes_to_the_phase_in_which_the_thread_was_seen_running() -> None:
    """A fetch that sleeps first and computes in its collate (the last half)."""
    base = builders.profile(1, fetch_ms=40, collate_fraction=0.5, batches=150, cpu_fraction=0.5)
    spans = [(row.end_ns - row.collate_ns, row.end_ns) for row in base.fetches]
    running, sleep = STATES.index("running"), STATES.index("sleep")
    threads = tuple(
        builders.replaced(
            row,
            states=tuple(
                running if any(a <= t < b for a, b in spans) else sleep for t in row.sample_ns
            ),
        )
        if row.role == "worker"
        else row
        for row in base.threads
    )
    found = {row.name: row for row in waits_of(builders.without(base, threads=threads)).phases}
    assert found["collate"].cpu_ns > 0.9 * found["collate"].time_ns
    assert found["fetch"].cpu_ns < 0.1 * found["fetch"].time_ns


def test_without_workers_there_is_no_waiting_for_a_task() -> None:
    names = [row.name for row in waits_of(builders.profile(0)).phases]
    assert names == ["fetch", "collate"]
    assert waits_of(builders.profile(0)).others == ()


def test_every_worker_has_a_feeder_row() -> None:
    profile = builders.profile(3, feeder_ms=4, fetch_ms=20, batches=150, epochs=2)
    others = waits_of(profile).others
    assert [(row.who, row.worker) for row in others] == [
        ("feeder", 0),
        ("feeder", 1),
        ("feeder", 2),
    ]
    for row in others:
        assert row.part_ns("cpu") == pytest.approx(100 * 4e6, rel=0.2)
        assert row.fraction("idle") > 0.5


def test_a_feeder_in_a_full_pipe_hands_over_and_a_pinning_thread_in_one_waits() -> None:
    base = builders.profile(1, feeder_ms=0.1, batches=60)
    pipe = STATES.index("pipe")
    (feeder,) = [row for row in base.threads if row.role == "feeder"]
    stuck = builders.replaced(feeder, states=(pipe,) * len(feeder.states))
    pinning = builders.replaced(stuck, role="pin_memory", worker=-1, pid=base.pid, tid=base.pid + 9)
    others = waits_of(builders.without(base, threads=(stuck, pinning))).others
    by_who = {row.who: row for row in others}
    assert by_who["feeder"].fraction("hand_over") > 0.9
    assert by_who["pin_memory"].fraction("idle") > 0.9


def test_threads_whose_times_were_not_readable_are_divided_by_samples() -> None:
    base = builders.profile(1, feeder_ms=10, fetch_ms=20, batches=100)
    threads = tuple(
        builders.replaced(row, exact=False, run_ns=0, run_queue_ns=0) for row in base.threads
    )
    (row,) = waits_of(builders.without(base, threads=threads)).others
    assert row.fraction("cpu") == pytest.approx(0.45, abs=0.2)
