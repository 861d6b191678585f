"""Without workers, what is waited for gets its name, beside the advice to overlap the waits."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.diagnosis import Diagnosis
from tests import builders

OVERLAP = "no_workers_latency_bound"
NAMES = {
    "disk": "disk_latency",
    "page_fault": "page_fault_io",
    "network": "network_latency",
}


def alone(states: dict[str, float], **more: Any) -> Diagnosis:
    return diagnose(builders.profile(0, states=states, batches=150, **more))


@pytest.mark.parametrize("part", NAMES)
def test_what_is_waited_for_comes_first_and_that_waits_overlap_second(part: str) -> None:
    found = alone({"cpu": 0.2, part: 0.8}).findings
    assert [row.cause for row in found[:2]] == [NAMES[part], OVERLAP]
    assert found[0].title.startswith("The loop waits for ")
    assert "num_workers=" in found[0].advice


@pytest.mark.parametrize("part", NAMES)
def test_two_views_of_one_wait_are_no_rivals(part: str) -> None:
    diagnosis = alone({"cpu": 0.1, part: 0.9})
    assert diagnosis.separated
    assert not diagnosis.would_separate
    assert diagnosis.margin > 0.5


def test_large_reads_are_a_matter_of_the_device_s_rate() -> None:
    found = alone({"cpu": 0.2, "disk": 0.8}, read_bytes=80_000_000).findings
    assert [row.cause for row in found[:2]] == ["disk_bandwidth", OVERLAP]


def test_sleep_has_no_other_name() -> None:
    assert alone({"cpu": 0.2, "sleep": 0.8}).findings[0].cause == OVERLAP


def test_the_smaller_part_of_the_waits_is_not_named() -> None:
    causes = [row.cause for row in alone({"cpu": 0.2, "sleep": 0.5, "disk": 0.3}).findings]
    assert causes[0] == OVERLAP
    assert "disk_latency" not in causes


def test_a_wait_with_a_name_does_not_come_before_more_cpu() -> None:
    found = alone({"cpu": 0.65, "disk": 0.35}).findings
    assert [row.cause for row in found[:3]] == ["no_workers_cpu_bound", "disk_latency", OVERLAP]


def test_a_wait_beside_a_far_longer_step_is_no_alarm() -> None:
    found = alone({"cpu": 0.1, "disk": 0.9}, fetch_ms=4.0, step_ms=16.0).findings
    assert found[0].cause == "not_loader_bound"
