"""What was going on while a batch took far longer than usual: its likely causes, best first."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from jupyter_ioscope.diagnosis.outliers import outliers_of
from jupyter_ioscope.model.diagnosis import OUTLIER_CAUSES
from jupyter_ioscope.model.observed import FileUse, GcPause
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Series
from tests import builders
from tests.outlier_loops import (
    causes,
    loop,
    noisy,
    only,
    periodic,
    slow_worker_fetch,
    span,
    with_states,
)
from tests.simulator import MS, PID, S


def one_slow_step(ms: float = 500.0, cpu: bool = True) -> Profile:
    steps = noisy(200)
    steps[120] = ms
    return loop([1.0] * 200, steps, cpu=cpu)


def test_a_collection_of_garbage_meanwhile_is_the_likely_cause() -> None:
    value = one_slow_step()
    first, _ = span(value, 120, "step")
    pause = GcPause(PID, -1, first + 20 * MS, first + 460 * MS, 2, 10)
    other = GcPause(PID + 1, 0, first, first + 500 * MS, 2, 10)
    row = only(outliers_of(builders.without(value, gc_pauses=(other, pause))))
    assert causes(row)[0] == "gc"
    assert row.causes[0].fraction == pytest.approx(440 / 490, rel=0.05)


@pytest.mark.parametrize(
    ("state", "cause"),
    [("disk", "disk"), ("page_fault", "page_fault"), ("network", "network"), ("gil", "gil"),
     ("poll", "network"), ("lock", "lock"), ("sleep", "sleep")],
)  # fmt: skip
def test_the_state_of_the_thread_in_that_stretch_is_named(state: str, cause: str) -> None:
    value = one_slow_step(cpu=False)
    row = only(outliers_of(with_states(value, span(value, 120, "step"), state)))
    assert causes(row)[0] == cause
    assert "samples" in row.causes[0].text


def test_more_computing_than_usual_is_said_where_nothing_says_more() -> None:
    row = only(outliers_of(one_slow_step()))
    assert causes(row) == ["cpu"]


def test_waiting_for_a_core_while_others_use_them() -> None:
    value = one_slow_step(cpu=False)
    value = with_busy(value, tree=0.1, machine=4.0)
    row = only(outliers_of(value))
    assert causes(row)[:2] == ["cores_taken", "run_queue"]
    alone = only(outliers_of(with_busy(value, tree=1.0, machine=1.0)))
    assert causes(alone) == ["run_queue"]


def with_busy(value: Profile, tree: float, machine: float) -> Profile:
    times = tuple(range(value.start_ns, value.end_ns, S // 4))
    return builders.without(
        value,
        series=MappingProxyType({
            "tree_cpu_ns": Series("tree_cpu_ns", "ns", "cumulative", "tree", times,
                                  tuple(tree * (t - times[0]) for t in times)),
            "machine_busy_ns": Series("machine_busy_ns", "ns", "cumulative", "machine", times,
                                      tuple(machine * (t - times[0]) for t in times)),
        }),
    )  # fmt: skip


def burst(value: Profile, name: str, unit: str, where: tuple[int, int], size: float) -> Profile:
    """`value` with a cumulative series that grows only in one stretch."""
    times = tuple(range(value.start_ns, value.end_ns, S // 4))
    length = where[1] - where[0]
    values = tuple(size * min(1.0, max(0.0, (t - where[0]) / length)) for t in times)
    series = {**value.series, name: Series(name, unit, "cumulative", "tree", times, values)}
    return builders.without(value, series=MappingProxyType(series))


def test_the_quota_that_held_it_back_is_named_with_its_time() -> None:
    value = one_slow_step(cpu=False)
    where = span(value, 120, "step")
    row = only(outliers_of(burst(value, "cgroup_throttled_ns", "ns", where, 400 * MS)))
    assert causes(row)[0] == "throttled"


def test_what_was_written_and_who_waited_meanwhile_counts_at_most_half() -> None:
    value = one_slow_step(cpu=False)
    where = span(value, 120, "step")
    value = burst(value, "tree_write_bytes", "bytes", where, 50e6)
    value = burst(value, "psi_io_some_us", "us", where, 450_000)
    value = with_states(value, where, "blocked")
    row = only(outliers_of(value))
    assert causes(row) == ["written", "pressure"]
    assert all(likely.fraction <= 0.5 for likely in row.causes)


def test_without_evidence_the_cause_is_unknown() -> None:
    value = builders.without(one_slow_step(cpu=False), threads=())
    assert only(outliers_of(value)).causes == ()


def test_a_larger_batch_that_took_longer_is_said_to_be_larger() -> None:
    value = slow_worker_fetch(100)
    fetches = tuple(
        row._replace(batch_bytes=row.batch_bytes * 6 if row.fetch_ns > 80 * MS else row.batch_bytes)
        for row in value.fetches
    )
    worst = outliers_of(builders.without(value, fetches=fetches)).worst[0]
    assert "larger" in causes(worst)
    assert worst.causes[0].text.startswith("in worker")


def test_reads_from_the_device_are_named_where_others_came_from_memory() -> None:
    value = slow_worker_fetch(300)
    fetches = tuple(
        row._replace(cpu_ns=5 * MS, read_blocks=40_000 if row.fetch_ns > 80 * MS else 0)
        for row in value.fetches
    )
    worst = outliers_of(builders.without(value, fetches=fetches)).worst[0]
    assert "read" in causes(worst)


def test_a_checkpoint_is_recognised_by_the_files_that_steps_wrote() -> None:
    value = periodic(100)
    files = tuple(
        FileUse(f"/run/checkpoint-{n}.pt", PID, -1, "step", "w", 1, 9_000_000, "ext4")
        for n in range(6)
    )
    log = FileUse("/run/log.txt", PID, -1, "step", "w", 600, 100, "ext4")
    (stall,) = outliers_of(builders.without(value, files=files)).stalls
    assert "written" in [row.cause for row in stall.causes]
    (other,) = outliers_of(builders.without(value, files=(log,))).stalls
    assert "written" not in [row.cause for row in other.causes]


def test_every_cause_has_a_name_that_is_listed() -> None:
    value = one_slow_step(cpu=False)
    for state in ("disk", "sleep", "running", "pipe"):
        row = only(outliers_of(with_states(value, span(value, 120, "step"), state)))
        assert set(causes(row)) <= set(OUTLIER_CAUSES)


def test_other_programs_keep_no_count_of_this_loops_batches() -> None:
    """Every 100 batches a checkpoint, and other programs make each one longer."""
    value = periodic(100, slow_ms=500.0)
    rows = tuple(row._replace(step_cpu_ns=5 * MS) for row in value.batches)
    value = with_busy(builders.without(value, batches=rows), tree=0.1, machine=4.0)
    assert outliers_of(value).stalls[0].causes[0].cause == "cores_taken"
    files = tuple(
        FileUse(f"/run/epoch-{n}.pt", PID, -1, "step", "w", 1, 9_000_000, "ext4") for n in range(6)
    )
    found = outliers_of(builders.without(value, files=files))
    assert found.stalls[0].causes[0].cause == "written"
    assert all(causes(row)[:2] == ["written", "cores_taken"] for row in found.worst)
