"""Steady throughput leaves out what filled queues and starting workers pretend."""

from __future__ import annotations

import pytest

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.throughput import throughput_of
from jupyter_ioscope.model.diagnosis import Throughput
from jupyter_ioscope.model.profile import Profile
from tests import builders


def throughput(profile: Profile) -> Throughput:
    found = throughput_of(Facts(profile))
    assert found is not None
    return found


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_the_rate_is_that_of_the_slowest_part(workers: int) -> None:
    profile = builders.profile(workers, fetch_ms=20, step_ms=1, main_ms=0, put_ms=0, batches=200)
    per_batch_ms = 21.0 if workers == 0 else 20.0 / workers
    expected = 8 / per_batch_ms * 1000
    found = throughput(profile)
    assert found.samples_per_s == pytest.approx(expected, rel=0.05)
    assert found.batches_per_s == pytest.approx(expected / 8, rel=0.05)


def test_a_slow_start_does_not_lower_the_steady_rate() -> None:
    quick = throughput(builders.profile(2, batches=100))
    slow = throughput(builders.profile(2, batches=100, start_ms=2000))
    assert slow.samples_per_s == pytest.approx(quick.samples_per_s, rel=0.01)
    assert slow.first_batch_s > quick.first_batch_s + 1.9


def test_epochs_too_short_to_be_steady_count_whole() -> None:
    profile = builders.profile(2, epochs=10, batches=5, start_ms=300)
    found = throughput(profile)
    assert found.batches == 50
    assert found.samples_per_s < 5 * 8 / 0.3


def test_the_error_is_that_of_repeated_profiles() -> None:
    found = [throughput(builders.profile(1, fetch_cv=0.4, seed=seed)) for seed in range(30)]
    mean = sum(row.samples_per_s for row in found) / len(found)
    spread = (sum((row.samples_per_s - mean) ** 2 for row in found) / (len(found) - 1)) ** 0.5
    typical = sum(row.error for row in found) / len(found)
    assert 0.5 < typical / spread < 2.0


def test_one_batch_gives_a_rate_that_nobody_should_trust() -> None:
    found = throughput(builders.profile(2, batches=1))
    assert found.error >= found.samples_per_s


def test_no_batch_gives_no_rate() -> None:
    profile = builders.without(builders.profile(), batches=())
    assert throughput_of(Facts(profile)) is None
