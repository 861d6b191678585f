"""Ceilings: what each resource alone would allow."""

from __future__ import annotations

import pytest

from jupyter_ioscope.diagnosis.ceilings import ceilings_of
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.throughput import throughput_of
from jupyter_ioscope.model.diagnosis import Ceiling
from jupyter_ioscope.model.profile import Profile
from tests import builders


def ceilings(profile: Profile) -> dict[str, Ceiling]:
    return {row.resource: row for row in ceilings_of(Facts(profile))}


def test_each_ceiling_is_what_its_resource_allows() -> None:
    profile = builders.profile(
        2, fetch_ms=20, step_ms=4, main_ms=0.5, put_ms=0, batches=150, cpus=4
    )
    found = ceilings(profile)
    assert found["worker_pool"].samples_per_s == pytest.approx(2 * 8 / 0.020, rel=0.05)
    assert found["consumer"].samples_per_s == pytest.approx(8 / 0.004, rel=0.01)
    assert found["hand_over"].samples_per_s == pytest.approx(8 / 0.0005, rel=0.05)
    assert found["cpu"].samples_per_s == pytest.approx(4 * 8 / 0.0247, rel=0.05)
    assert "storage" not in found
    assert "gil" not in found


def test_a_quota_lowers_the_ceiling_of_the_cpu() -> None:
    whole = ceilings(builders.profile(2, cpus=4))["cpu"]
    part = ceilings(builders.profile(2, cpus=4, quota=1.5))["cpu"]
    assert part.samples_per_s == pytest.approx(whole.samples_per_s * 1.5 / 4, rel=0.01)
    assert part.label == "CPU (1.5 cores)"


def test_storage_has_a_ceiling_only_where_disk_time_was_measured() -> None:
    states = {"cpu": 0.2, "disk": 0.8}
    found = ceilings(builders.profile(2, states=states, batches=150))
    assert found["storage"].samples_per_s == pytest.approx(2 * 8 / 0.016, rel=0.15)
    assert "storage" not in ceilings(builders.profile(2, states=states, tier="in_process"))


def test_the_lowest_ceiling_is_close_to_what_was_reached() -> None:
    for settings in ({"fetch_ms": 30.0}, {"fetch_ms": 2.0, "step_ms": 10.0}):
        profile = builders.profile(2, batches=200, **settings)  # type: ignore[arg-type]
        reached = throughput_of(Facts(profile))
        assert reached is not None
        assert reached.samples_per_s == pytest.approx(
            ceilings_of(Facts(profile))[0].samples_per_s, rel=0.1
        )


def test_every_ceiling_has_an_interval_and_a_sentence() -> None:
    for row in ceilings_of(Facts(builders.profile(0, states={"cpu": 0.5, "gil": 0.5}))):
        assert row.low <= row.samples_per_s <= row.high
        assert row.how.endswith(".")
