"""Outlier batches: found against their neighbours, grouped by spacing, with what was going on."""

from __future__ import annotations

import random
import time
from types import MappingProxyType

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.diagnosis.outliers import SHOWN, outliers_of
from jupyter_ioscope.diagnosis.robust import departures, rounds
from jupyter_ioscope.diagnosis.stalls import rhythm
from jupyter_ioscope.model.diagnosis import OUTLIER_CAUSES, Outlier, Outliers
from jupyter_ioscope.model.observed import FileUse, GcPause
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, Series, ThreadReadings
from jupyter_ioscope.model.records import Batch
from tests import builders
from tests.simulator import MS, PID, S


def loop(
    waits_ms: list[float], steps_ms: list[float], *, epoch_of: int = 10**9, cpu: bool = True
) -> Profile:
    """A loop without workers that waits and steps as given; its thread always runs."""
    base = builders.profile(0, batches=1)
    now = base.start_ns + 5 * MS
    rows: list[Batch] = []
    for index, (wait, step) in enumerate(zip(waits_ms, steps_ms, strict=True)):
        waited, done = now + int(wait * MS), now + int((wait + step) * MS)
        rows.append(
            Batch(index, index // epoch_of, 0, now, waited, done,
                  (waited - now) * cpu, (done - waited) * cpu, 8, -1, index)
        )  # fmt: skip
        now = done
    epochs = tuple(
        base.epochs[0]._replace(epoch=number, end_ns=now)
        for number in range(rows[-1].epoch + 1 if rows else 0)
    )
    consumer = thread(base, "consumer", PID, base.start_ns, now, lambda _: "running")
    return builders.without(
        base, batches=tuple(rows), fetches=(), epochs=epochs, end_ns=now + MS,
        threads=(consumer,), series=MappingProxyType({}), stacks=None,
    )  # fmt: skip


def thread(base: Profile, role: str, pid: int, first: int, last: int, doing) -> ThreadReadings:  # type: ignore[no-untyped-def]
    """Readings of one thread at 25 Hz; `doing` gives the state at an instant."""
    times = tuple(range(first, last, 40 * MS))
    states = tuple(STATES.index(doing(t)) for t in times)
    run = sum(40 * MS for t in times if doing(t) == "running")
    return ThreadReadings(pid, pid, "python", role, -1, first, last, run, 0, 0, True, times, states)


def noisy(count: int, mean: float = 10.0, seed: int = 0) -> list[float]:
    rng = random.Random(seed)
    return [mean * max(0.3, rng.gauss(1, 0.15)) for _ in range(count)]


def span(value: Profile, batch: int, phase: str) -> tuple[int, int]:
    row = value.batches[batch]
    if phase == "wait":
        return row.wait_start_ns, row.wait_end_ns
    return row.wait_end_ns, row.step_end_ns


def with_states(value: Profile, where: tuple[int, int], state: str) -> Profile:
    """`value` as if its thread had been in a state in one stretch."""
    consumer = thread(
        value, "consumer", PID, value.start_ns, value.end_ns,
        lambda t: state if where[0] <= t < where[1] else "running",
    )  # fmt: skip
    return builders.without(value, threads=(consumer,))


def only(found: Outliers) -> Outlier:
    assert len(found.worst) == found.count == 1, found
    return found.worst[0]


def causes(row: Outlier) -> list[str]:
    return [likely.cause for likely in row.causes]


# -- which batches stand out --------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_one_slow_step_among_many_is_found_and_measured(seed: int) -> None:
    steps = noisy(300, seed=seed)
    steps[200] = 400.0
    row = only(outliers_of(loop([1.0] * 300, steps)))
    assert (row.phase, row.batch) == ("step", 200)
    assert row.usual_ns == pytest.approx(10 * MS, rel=0.1)
    assert row.lost_ns == pytest.approx(390 * MS, rel=0.02)
    assert row.score > 6


@pytest.mark.parametrize("seed", range(10))
def test_ordinary_spread_holds_no_outliers(seed: int) -> None:
    rng = random.Random(seed)
    waits = [10 * rng.lognormvariate(0, 0.25) for _ in range(500)]
    assert outliers_of(loop(waits, noisy(500, 5.0, seed))).count == 0


def test_a_slow_drift_is_no_outlier() -> None:
    steps = [10 + 40 * i / 2000 + x for i, x in enumerate(noisy(2000, 1.0))]
    assert outliers_of(loop([1.0] * 2000, steps)).count == 0


@pytest.mark.parametrize("workers", [2, 4, 8])
def test_batches_that_come_a_round_at_a_time_are_no_outliers(workers: int) -> None:
    """All workers finish together: one long wait in every round, the others none."""
    base = builders.profile(workers, batches=200, fetch_ms=40, step_ms=0.2, fetch_cv=0.02)
    found = outliers_of(base)
    assert [row for row in found.worst if row.stall < 0] == []


def test_a_slow_fetch_and_the_wait_for_it_are_one_outlier() -> None:
    value = slow_worker_fetch(400)
    found = [row for row in outliers_of(value).worst if row.lost_ns > 100 * MS]
    assert len(found) == 1
    assert found[0].phase == "wait"
    assert found[0].lost_ns == pytest.approx(400 * MS, rel=0.2)


def slow_worker_fetch(more_ms: int, at: int = 60) -> Profile:
    """A profile of two workers in which one fetch took longer, and everything after it came later
    (worker 0's rows; what worker 1 does meanwhile is not changed)."""
    base = builders.profile(2, batches=120, fetch_ms=20, step_ms=1)
    slow = next(row for row in base.fetches if row.task == at)
    late = more_ms * MS

    def moved(t: int) -> int:
        return t + late if t >= slow.end_ns else t

    fetches = tuple(
        row._replace(start_ns=moved(row.start_ns), end_ns=moved(row.end_ns),
                     cpu_ns=row.cpu_ns + (late if row is slow else 0))
        for row in base.fetches
    )  # fmt: skip
    batches = tuple(
        row._replace(
            wait_start_ns=moved(row.wait_start_ns), wait_end_ns=moved(row.wait_end_ns),
            step_end_ns=moved(row.step_end_ns),
        )
        for row in base.batches
    )  # fmt: skip
    return builders.without(
        base, fetches=fetches, batches=batches, end_ns=base.end_ns + late, threads=()
    )


def test_at_most_ten_are_shown_and_all_are_counted() -> None:
    rng = random.Random(1)
    steps = noisy(2000)
    slow = rng.sample(range(2000), 60)
    for i in slow:
        steps[i] = rng.uniform(100, 500)
    found = outliers_of(loop([1.0] * 2000, steps))
    assert found.count == 60
    assert len(found.worst) == SHOWN
    losses = [row.lost_ns for row in found.worst]
    assert losses == sorted(losses, reverse=True)
    assert found.lost_ns == pytest.approx(sum(steps[i] - 10 for i in slow) * MS, rel=0.02)


# -- odd input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_too_few_batches_have_no_usual_time(count: int) -> None:
    assert outliers_of(loop([5.0] * count, [500.0] * count)) == Outliers()


def test_equal_times_hold_no_outliers() -> None:
    assert outliers_of(loop([5.0] * 500, [0.0] * 500)).count == 0
    assert departures([0.0] * 500, 1.0) == []


def test_a_clock_that_jumped_back_breaks_nothing() -> None:
    value = loop(noisy(100), noisy(100))
    rows = list(value.batches)
    rows[50] = rows[50]._replace(wait_end_ns=rows[50].wait_start_ns - 10 * S)
    assert diagnose(builders.without(value, batches=tuple(rows))).outliers.count <= 2


def test_a_stretch_in_which_nothing_ran_says_so() -> None:
    steps = noisy(200)
    steps[100] = 60_000.0
    value = loop([1.0] * 200, steps, cpu=False)
    first, last = span(value, 100, "step")
    (consumer,) = value.threads
    kept = [i for i, t in enumerate(consumer.sample_ns) if not first + 20 * MS < t < last]
    consumer = builders.replaced(
        consumer,
        sample_ns=tuple(consumer.sample_ns[i] for i in kept),
        states=tuple(consumer.states[i] for i in kept),
    )
    row = only(outliers_of(builders.without(value, threads=(consumer,))))
    assert causes(row)[0] == "stopped"


@pytest.mark.timeout(240)
def test_a_quarter_million_batches_take_little_time() -> None:
    rng = random.Random(0)
    times = [rng.randrange(8, 12) * MS for _ in range(1000)]
    now, rows = 0, []
    for i in range(250_000):
        waited = now + times[i % 1000]
        done = waited + times[(i * 7) % 1000] + (200 * MS if i % 5000 == 4999 else 0)
        rows.append(Batch(i, 0, 0, now, waited, done, 0, 0, 8, -1, i))
        now = done
    value = builders.without(loop([1.0], [1.0]), batches=tuple(rows), end_ns=now)
    began = time.process_time()
    found = outliers_of(value)
    used_s = time.process_time() - began
    began = time.process_time()
    sum(row.wait_end_ns - row.wait_start_ns for row in rows)
    per_pass_s = time.process_time() - began
    assert found.count == 50
    assert found.stalls[0].every == 5000
    assert used_s < 150 * per_pass_s, "a few passes over the batches, not a search in each"


# -- spacing ------------------------------------------------------------------------------------


def periodic(every: int, count: int = 600, slow_ms: float = 300.0, seed: int = 0) -> Profile:
    steps = noisy(count, seed=seed)
    for i in range(every - 1, count, every):
        steps[i] = slow_ms
    return loop([1.0] * count, steps)


@pytest.mark.parametrize("every", [5, 20, 100])
def test_a_stall_every_n_batches_is_told_with_its_n(every: int) -> None:
    found = outliers_of(periodic(every))
    (stall,) = found.stalls
    assert (stall.kind, stall.phase, stall.every) == ("periodic", "step", every)
    assert stall.count == 600 // every
    assert stall.lost_ns == pytest.approx(stall.count * 290 * MS, rel=0.02)
    assert {row.stall for row in found.worst} == {0}


def test_other_outliers_between_them_do_not_hide_the_rhythm() -> None:
    rng = random.Random(3)
    steps = noisy(1000)
    for i in range(49, 1000, 50):
        steps[i] = 300.0
    for i in rng.sample(range(1000), 15):
        steps[i] = 80.0
    (stall,) = outliers_of(loop([1.0] * 1000, steps)).stalls
    assert stall.every == 50
    assert stall.count >= 18


def test_a_timer_is_told_in_seconds() -> None:
    """Every two seconds, whatever batch it hits."""
    rng = random.Random(5)
    steps = [rng.uniform(5, 15) for _ in range(1500)]
    now, due = 0.0, 2000.0
    for i in range(len(steps)):
        now += 1 + steps[i]
        if now >= due:
            steps[i] += 150
            now += 150
            due += 2000
    stalls = outliers_of(loop([1.0] * 1500, steps)).stalls
    assert len(stalls) == 1
    assert stalls[0].every_s == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize("seed", range(20))
def test_chance_has_no_rhythm(seed: int) -> None:
    rng = random.Random(seed)
    steps = noisy(800, seed=seed)
    for i in rng.sample(range(1, 800), rng.randrange(4, 20)):
        steps[i] = 200.0
    assert outliers_of(loop([1.0] * 800, steps)).stalls == ()


def test_positions_too_few_or_beside_one_another_have_no_rhythm() -> None:
    assert rhythm([10, 20, 30], 0.02) is None
    assert rhythm([1, 1, 1, 1, 1, 1], 0.02) is None
    assert rhythm([], 0.02) is None


def test_the_first_batches_of_epochs_are_a_stall_of_their_own() -> None:
    waits = noisy(400, 5.0)
    for i in range(0, 400, 50):
        waits[i] = 800.0
    found = outliers_of(loop(waits, [1.0] * 400, epoch_of=50))
    (stall,) = found.stalls
    assert (stall.kind, stall.phase, stall.count) == ("epoch_start", "wait", 8)
    assert stall.causes[0].cause == "start" or "cpu" in [row.cause for row in stall.causes]


# -- likely causes ------------------------------------------------------------------------------


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


def test_sums_over_a_round_are_sums_of_that_many() -> None:
    assert rounds([1, 2, 3, 4], 2) == [1, 3, 5, 7]
    assert rounds([1, 2], 1) == [1, 2]
    assert rounds([], 3) == []


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


def test_few_large_stalls_are_seen_among_smaller_ones() -> None:
    """Six checkpoints in sixty batches, on a machine that hiccups now and then."""
    steps = noisy(60, 30.0)
    for i in range(9, 60, 10):
        steps[i] = 230.0
    steps[24] = steps[37] = 100.0
    (stall,) = outliers_of(loop([1.0] * 60, steps)).stalls
    assert (stall.every, stall.count) == (10, 6)


def test_of_two_kinds_of_batches_none_is_an_outlier() -> None:
    rng = random.Random(2)
    steps = [rng.choice((5.0, 5.0, 20.0)) * rng.uniform(0.9, 1.1) for _ in range(500)]
    assert outliers_of(loop([1.0] * 500, steps)).count <= 5


def test_what_hardly_lengthens_a_batch_is_no_matter() -> None:
    waits = noisy(100, 1.0)
    waits[50] = 6.0
    assert outliers_of(loop(waits, noisy(100, 80.0))).count == 0
