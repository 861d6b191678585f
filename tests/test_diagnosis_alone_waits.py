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


@pytest.mark.parametrize("workers", [0, 2])
def test_waits_longer_than_the_work_itself_come_before_a_line_behind_other_programs(
    workers: int,
) -> None:
    states = {"cpu": 0.15, "run_queue": 0.45, "disk": 0.4}
    value = builders.profile(
        workers, states=states, batches=200, fetch_ms=40.0, others_cores=1.8, cpus=2
    )
    assert diagnose(value).findings[0].cause == "disk_latency"


def test_a_line_of_the_loops_own_threads_is_its_work() -> None:
    value = builders.profile(0, states={"cpu": 0.5, "run_queue": 0.1, "disk": 0.4}, batches=200)
    assert diagnose(value).findings[0].cause == "no_workers_cpu_bound"


def first_fetch_late(faults_later: int) -> Diagnosis:
    """The first fetch takes half a second longer, for pages that had to come from the disk."""
    made = builders.profile(0, states={"cpu": 0.3, "page_fault": 0.7}, batches=100)
    slow = made.fetches[0]
    slow = slow._replace(start_ns=slow.start_ns - 500_000_000, major_faults=30)
    later = [row._replace(major_faults=faults_later) for row in made.fetches[1:]]
    start = made.start_ns - 600_000_000
    return diagnose(builders.without(made, start_ns=start, fetches=(slow, *later)))


def test_pages_that_the_first_fetch_waits_for_more_than_others_are_no_set_up() -> None:
    assert first_fetch_late(faults_later=1).findings[0].cause == "page_fault_io"


def test_pages_that_only_the_first_fetch_waits_for_are_set_up() -> None:
    causes = [row.cause for row in first_fetch_late(faults_later=0).findings]
    assert "first_batch_setup" in causes
