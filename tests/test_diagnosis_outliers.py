"""Outlier batches: found against their neighbours and grouped by spacing."""

from __future__ import annotations

import random
import time

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.diagnosis.outliers import SHOWN, outliers_of
from jupyter_ioscope.diagnosis.robust import departures, rounds
from jupyter_ioscope.diagnosis.stalls import rhythm
from jupyter_ioscope.model.diagnosis import Outliers
from jupyter_ioscope.model.records import Batch
from tests import builders
from tests.outlier_loops import (
    causes,
    loop,
    noisy,
    only,
    periodic,
    slow_worker_fetch,
    span,
)
from tests.simulator import MS, S

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


def test_sums_over_a_round_are_sums_of_that_many() -> None:
    assert rounds([1, 2, 3, 4], 2) == [1, 3, 5, 7]
    assert rounds([1, 2], 1) == [1, 2]
    assert rounds([], 3) == []


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
