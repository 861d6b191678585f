"""The replay repeats what was recorded, and predicts what a change really does."""

from __future__ import annotations

import pytest

from jupyter_ioscope.diagnosis.cycles import Without
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.loop import loop_of
from jupyter_ioscope.model.profile import Profile
from tests import builders


def loop_ns(profile: Profile) -> int:
    loop = loop_of(profile)
    assert loop is not None
    return loop.wall_ns


@pytest.mark.parametrize("workers", [0, 1, 2, 4])
@pytest.mark.parametrize("step_ms", [0.5, 5.0, 25.0])
def test_the_replay_repeats_the_recording(workers: int, step_ms: float) -> None:
    profile = builders.profile(workers, step_ms=step_ms, fetch_cv=0.4, batches=60, epochs=2)
    assert abs(Facts(profile).replay.misfit) < 0.05


@pytest.mark.parametrize("workers", [0, 2, 3])
@pytest.mark.parametrize("step_ms", [1.0, 6.0])
def test_removing_disk_time_frees_what_a_loop_without_it_shows(
    workers: int, step_ms: float
) -> None:
    slow = builders.profile(
        workers, states={"cpu": 0.4, "disk": 0.6}, step_ms=step_ms, batches=200, start_ms=0
    )
    fast = builders.profile(workers, fetch_ms=8.0, step_ms=step_ms, batches=200, start_ms=0)
    truth = 1 - loop_ns(fast) / loop_ns(slow)
    gain = Facts(slow).gain_blocked("disk")
    assert gain.share == pytest.approx(truth, abs=0.04)
    assert gain.low <= truth + 0.02
    assert gain.high >= truth - 0.02


def test_a_loop_bound_by_its_step_gains_nothing_from_faster_workers() -> None:
    facts = Facts(builders.profile(2, fetch_ms=4, step_ms=20))
    assert facts.gain_cpu().share < 0.02
    assert facts.gain_step().share > 0.8


def test_a_loop_bound_by_workers_gains_nothing_from_a_faster_step() -> None:
    facts = Facts(builders.profile(2, fetch_ms=40, step_ms=5))
    assert facts.gain_step().share < 0.02


def test_a_costly_take_over_limits_the_loop_whatever_the_workers_do() -> None:
    facts = Facts(builders.profile(4, fetch_ms=4, step_ms=1, main_ms=20))
    assert facts.gain_hand_over().share > 0.8
    assert facts.gain_cpu().share < 0.02


def test_batches_that_lay_ready_were_not_long_on_their_way() -> None:
    """A few waits are long because the consumer stood in line for a core: the batches had been
    finished long before, and tell nothing about how long others travel."""
    base = builders.profile(2, fetch_ms=0.1, step_ms=2, main_ms=0.3, batches=300, start_ms=0)
    rows = list(base.batches)
    for at in range(20, 300, 20):  # nearly all of every twentieth step was spent waiting
        row = rows[at]
        begin = row.wait_start_ns - 1_900_000
        rows[at - 1] = rows[at - 1]._replace(step_end_ns=begin)
        rows[at] = row._replace(wait_start_ns=begin)
    facts = Facts(builders.without(base, batches=tuple(rows)))
    fast = builders.profile(2, fetch_ms=0.1, step_ms=0.01, main_ms=0.3, batches=300, start_ms=0)
    truth = 1 - loop_ns(fast) / loop_ns(base)
    assert facts.gain_step().share == pytest.approx(truth, abs=0.2)


def test_nothing_removed_frees_nothing() -> None:
    effect = Facts(builders.profile()).replay.effect(Without())
    assert effect.freed == 0


def test_a_finished_batch_that_is_slow_to_arrive_is_not_the_consumers_work() -> None:
    """A worker blocked in a page fault keeps the GIL, so its feeder sends the batch before only
    when the next fetch lets go: the consumer waits, but faster fetches still gain most."""
    base = builders.profile(1, fetch_ms=20, step_ms=1, batches=80, states={"page_fault": 1.0})
    late = tuple(
        row._replace(end_ns=row.end_ns - 12_000_000, start_ns=row.start_ns - 12_000_000)
        for row in base.fetches
    )
    facts = Facts(builders.without(base, fetches=late))
    assert facts.gain_blocked("page_fault").share > 2 * facts.gain_hand_over().share
