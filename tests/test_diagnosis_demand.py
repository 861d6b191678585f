"""Who wanted the cores, and how much could be seen."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from jupyter_ioscope.diagnosis.demand import demand_of
from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.tiers import tier_of
from jupyter_ioscope.model.readings import Series
from tests import builders


def test_own_and_others_use_of_the_cores_are_told_apart() -> None:
    value = builders.profile(2, fetch_ms=40, batches=150, cpus=4, others_cores=1.5)
    found = demand_of(Facts(value))
    assert found is not None
    assert found.own == pytest.approx(2.0, abs=0.2)
    assert found.others == pytest.approx(1.5, abs=0.2)
    assert found.cores == 4


def test_standing_in_line_for_a_core_is_counted_in_threads() -> None:
    value = builders.profile(2, states={"cpu": 0.5, "run_queue": 0.5}, batches=200, step_ms=0.1)
    found = demand_of(Facts(value))
    assert found is not None
    assert found.waiting == pytest.approx(1.0, abs=0.15)


def test_time_held_back_by_the_quota_is_its_growth() -> None:
    value = builders.profile(2)
    times = (value.start_ns, value.end_ns)
    series = {
        "cgroup_throttled_ns": Series("", "ns", "cumulative", "cgroup", times, (5e9, 7.5e9)),
        "cgroup_throttled_periods": Series("", "count", "cumulative", "cgroup", times, (10, 42)),
    }
    found = demand_of(Facts(builders.without(value, series=MappingProxyType(series))))
    assert found is not None
    assert found.throttled_s == pytest.approx(2.5)
    assert found.throttled_periods == 32
    assert found.others is None, "without the machine's CPU time it is not known"


def test_what_was_not_measured_is_none() -> None:
    found = demand_of(Facts(builders.profile(2, tier="in_process")))
    assert found is not None
    assert (found.waiting, found.others, found.throttled_s) == (None, None, None)
    assert demand_of(Facts(builders.empty_profile())) is None


@pytest.mark.parametrize("tier", ["full", "no_ptrace", "in_process"])
def test_every_diagnosis_names_its_tier_and_what_it_means(tier: str) -> None:
    found = diagnose(builders.profile(2, tier=tier, batches=20)).tier
    assert found.name == tier
    assert found.title
    assert len(found.text) > 20


def test_stacks_that_are_missing_are_said_to_be_missing() -> None:
    value = builders.without(builders.profile(2), stacks=None)
    assert "without stacks" in tier_of(value).text
