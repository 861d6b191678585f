"""Every rule names its cause on loaders that have only that trouble, and keeps quiet otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.diagnosis import RESOURCES
from jupyter_ioscope.trials.toggle import all_toggles
from tests import builders

# name -> (settings of the simulated loader, cause, resource)
SINGLE: dict[str, tuple[dict[str, Any], str, str]] = {
    "step": ({"fetch_ms": 3, "step_ms": 15}, "not_loader_bound", "consumer"),
    "step, no workers": (
        {"workers": 0, "fetch_ms": 0.4, "step_ms": 15},
        "not_loader_bound",
        "consumer",
    ),
    "cpu": ({"cpu_fraction": 1.0}, "decode_cpu", "worker_cpu"),
    "collate": ({"collate_fraction": 0.8}, "slow_collate", "worker_cpu"),
    "cpu, no workers": ({"workers": 0}, "no_workers_cpu_bound", "main_cpu"),
    "cpu, one core": ({"workers": 0, "cpus": 1}, "decode_cpu", "main_cpu"),
    "sleep, no workers": (
        {"workers": 0, "states": {"cpu": 0.1, "sleep": 0.9}},
        "no_workers_latency_bound",
        "sleep",
    ),
    "disk, no workers": (
        {"workers": 0, "states": {"cpu": 0.2, "disk": 0.8}},
        "disk_latency",
        "disk",
    ),
    "page fault, no workers": (
        {"workers": 0, "states": {"cpu": 0.2, "page_fault": 0.8}},
        "page_fault_io",
        "page_fault",
    ),
    "disk": ({"states": {"cpu": 0.2, "disk": 0.8}, "read_bytes": 400_000}, "disk_latency", "disk"),
    "large reads": (
        {"states": {"cpu": 0.2, "disk": 0.8}, "read_bytes": 80_000_000},
        "disk_bandwidth",
        "disk",
    ),
    "page fault": ({"states": {"cpu": 0.2, "page_fault": 0.8}}, "page_fault_io", "page_fault"),
    "network": ({"states": {"cpu": 0.1, "network": 0.9}}, "network_latency", "network"),
    "sleep": ({"states": {"cpu": 0.1, "sleep": 0.9}}, "no_workers_latency_bound", "sleep"),
    "lock": (
        {"workers": 4, "states": {"cpu": 0.25, "lock": 0.75}, "step_ms": 0.5},
        "lock_contention",
        "lock",
    ),
    "gil, no workers": (
        {"workers": 0, "states": {"cpu": 0.45, "gil": 0.55}},
        "gil_bound_threads",
        "gil",
    ),
    "many tensors": (
        {"fetch_ms": 3, "step_ms": 1, "main_ms": 40, "tensors": 113},
        "ipc_many_tensors",
        "hand_over",
    ),
    "objects": (
        {"fetch_ms": 3, "step_ms": 1, "main_ms": 20, "tensors": 5000, "batch_bytes": 90_000},
        "ipc_python_objects",
        "hand_over",
    ),
    "nothing to do for workers": (
        {"fetch_ms": 0.5, "step_ms": 0.3, "main_ms": 1.5, "tensors": 1, "batch_bytes": 4_000},
        "workers_overhead",
        "hand_over",
    ),
    "large batches": (
        {"fetch_ms": 3, "step_ms": 1, "main_ms": 20, "tensors": 2, "batch_bytes": 150_000_000},
        "bytes_inflated",
        "hand_over",
    ),
    "too many workers": (
        {
            "workers": 8,
            "cpus": 2,
            "states": {"cpu": 0.25, "run_queue": 0.75},
            "step_ms": 0.2,
            "main_ms": 0.1,
        },
        "too_many_workers",
        "run_queue",
    ),
    "restarts": (
        {"epochs": 6, "batches": 10, "fetch_ms": 4, "start_ms": 150},
        "worker_restart_per_epoch",
        "start_up",
    ),
    "one slow start": ({"fetch_ms": 4, "start_ms": 3000}, "first_batch_setup", "start_up"),
}


def build(settings: dict[str, Any], seed: int) -> Any:
    return builders.profile(**{"batches": 150, **settings, "seed": seed})


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", SINGLE)
def test_the_only_trouble_comes_first(name: str, seed: int) -> None:
    settings, cause, resource = SINGLE[name]
    found = diagnose(build(settings, seed)).findings
    assert (found[0].cause, found[0].resource) == (cause, resource)


@pytest.mark.parametrize("name", [name for name in SINGLE if name.startswith("step")])
def test_a_healthy_loader_is_told_that_nothing_is_wrong(name: str) -> None:
    diagnosis = diagnose(build(SINGLE[name][0], seed=9))
    assert [row.cause for row in diagnosis.findings] == ["not_loader_bound"]
    assert diagnosis.headline.startswith("Nothing to fix here")


def test_a_balanced_loader_has_no_trouble() -> None:
    diagnosis = diagnose(builders.profile(2, fetch_ms=20, step_ms=10.5, batches=150))
    assert [row.cause for row in diagnosis.findings] == ["not_loader_bound"]


@pytest.mark.parametrize("name", SINGLE)
def test_findings_are_complete(name: str) -> None:
    diagnosis = diagnose(build(SINGLE[name][0], seed=5))
    for row in diagnosis.findings:
        assert row.resource in RESOURCES
        assert 0 <= row.low <= row.share <= row.high <= 1
        assert row.title
        assert row.advice
        assert row.evidence
        assert all(any(c.isdigit() for c in line) for line in row.evidence[:1])
        assert set(row.toggles) <= {toggle.name for toggle in all_toggles()}
        assert 0 <= row.cost_s <= row.share * 1e9


def test_advice_asks_for_more_workers_only_where_there_are_cores() -> None:
    free = diagnose(builders.profile(2, cpus=6)).findings[0]
    full = diagnose(builders.profile(2, cpus=2)).findings[0]
    quota = diagnose(builders.profile(2, cpus=8, quota=2.0)).findings[0]
    assert "Try 6 workers" in free.advice
    assert "workers" in free.toggles
    for row in (full, quota):
        assert "More workers do not help" in row.advice
        assert "workers" not in row.toggles


def test_the_function_that_the_time_went_into_is_named() -> None:
    found = diagnose(builders.profile(2, hot="rotate")).findings[0]
    assert found.where == "rotate in In [4], line 12"
    assert any("rotate in In [4], line 12" in line for line in found.evidence)


def test_what_workers_did_before_the_profile_leaves_other_rules_standing() -> None:
    profile = builders.profile(states={"cpu": 0.1, "sleep": 0.9}, batches=150)
    diagnosis = diagnose(builders.with_workers_before_profile(profile))
    assert diagnosis.findings[0].resource == "sleep"
    assert "hand_over" in {row.rule for row in diagnosis.unknown}


@pytest.mark.parametrize("workers", [0, 2])
def test_without_the_sampler_blocked_fetches_are_found_and_the_reason_is_unknown(
    workers: int,
) -> None:
    profile = builders.profile(workers, states={"cpu": 0.1, "sleep": 0.9}, tier="in_process")
    diagnosis = diagnose(profile)
    assert diagnosis.findings[0].resource == "none"
    assert {"gil", "lock"} <= {row.rule for row in diagnosis.unknown}
    reasons = {row.rule: row.reason for row in diagnosis.unknown}
    assert all("helper process could not be started" in reasons[rule] for rule in ("gil", "lock"))


IN_LINE = {"cpu": 0.3, "run_queue": 0.7}


def test_cores_that_other_programs_take_stand_behind_what_the_loader_does() -> None:
    profile = builders.profile(2, states=IN_LINE, cpus=2, others_cores=1.5, batches=150)
    first, second = diagnose(profile).findings[:2]
    assert first.cause == "decode_cpu"
    assert any("Other programs kept" in line for line in first.evidence)
    assert (second.cause, second.resource) == ("cores_taken", "run_queue")
    # What stands in line for less of a core stands there for less: both would free that time.
    assert first.share + second.share > 1
    assert "of 2 cores" in second.title


def test_time_in_line_behind_others_goes_with_the_cpu_that_is_asked_for() -> None:
    quiet = builders.profile(2, states={"cpu": 0.3, "disk": 0.7}, cpus=2, batches=150)
    busy = builders.profile(2, states=IN_LINE, cpus=2, others_cores=1.9, batches=150)
    shares = [
        next(row.share for row in diagnose(one).findings if row.cause == "decode_cpu")
        for one in (quiet, busy)
    ]
    assert shares[0] < 0.35 < 0.7 < shares[1]


@pytest.mark.parametrize(
    "settings",
    [
        {"cpus": 2, "others_cores": 0.1},
        {"cpus": 8, "quota": 2.0, "others_cores": 5.0},  # enough cores are free for the quota
    ],
)
def test_other_programs_that_take_nothing_are_not_blamed(settings: dict[str, Any]) -> None:
    profile = builders.profile(2, states=IN_LINE, batches=150, **settings)
    assert "cores_taken" not in {row.cause for row in diagnose(profile).findings}


def test_starting_workers_that_no_core_is_there_for_is_the_crowds_doing() -> None:
    settings = {**SINGLE["too many workers"][0], "batches": 600}
    crowds = [
        diagnose(build({**settings, "start_ms": start}, seed=3)).findings[0]
        for start in (1.0, 1_500.0)
    ]
    assert [row.cause for row in crowds] == ["too_many_workers"] * 2
    assert not any("no core is there for" in line for line in crowds[0].evidence)
    assert any("no core is there for" in line for line in crowds[1].evidence)
    assert crowds[1].cost_s > crowds[0].cost_s + 0.5
    assert "first_batch_setup" in crowds[1].refines


def test_a_crowd_of_workers_is_not_charged_for_other_programs() -> None:
    settings = {**SINGLE["too many workers"][0], "batches": 600}
    quiet = diagnose(build(settings, seed=3)).findings[0]
    taken = diagnose(build({**settings, "others_cores": 2.0}, seed=3)).findings
    shares = {row.cause: row.share for row in taken}
    assert shares["too_many_workers"] == pytest.approx(quiet.share / 2, rel=0.2)
    assert shares["cores_taken"] == pytest.approx(quiet.share / 2, rel=0.2)


def test_workers_are_not_offered_where_carrying_a_batch_costs_more_than_making_it() -> None:
    tiny = diagnose(builders.profile(0, fetch_ms=0.3, step_ms=0.05, batches=2000)).findings[0]
    assert tiny.cause == "decode_cpu"
    assert "workers" not in tiny.toggles
    assert "Workers would not help" in tiny.advice


def test_a_loop_over_a_dataset_itself_is_not_told_to_use_workers() -> None:
    profile = builders.profile(0, batches=150)
    own = tuple(replace(row, library="datasets") for row in profile.loaders)
    found = diagnose(builders.without(profile, loaders=own)).findings[0]
    assert found.resource == "main_cpu"
    assert "num_workers" not in found.advice
    assert "workers" not in found.toggles


def test_workers_without_work_need_more_shards_not_more_workers() -> None:
    profile = builders.profile(4, states={"cpu": 0.1, "sleep": 0.9}, batches=160)
    only = tuple(row for row in profile.fetches if row.worker == 0)
    tasks = {(row.epoch, row.worker, row.task) for row in only}
    kept = tuple(row for row in profile.batches if (row.epoch, row.worker, row.task) in tasks)
    one = builders.without(profile, fetches=only, batches=kept)
    found = diagnose(one).findings[0]
    assert found.resource == "sleep"
    assert "3 of the 4 workers got nothing to do" in found.advice


def test_enough_workers_that_sleep_are_no_trouble_of_a_loop_without_a_step() -> None:
    asleep = {"cpu": 0.05, "sleep": 0.95}
    drained = builders.profile(8, states=asleep, step_ms=0.05, cpus=2, batches=900)
    assert not [row for row in diagnose(drained).findings if row.resource == "sleep"]
    stepping = builders.profile(8, states=asleep, step_ms=1.0, cpus=2, batches=900)
    few = builders.profile(2, states=asleep, step_ms=0.05, cpus=2, batches=900)
    for profile in (stepping, few):
        assert diagnose(profile).findings[0].resource == "sleep"


def test_a_step_that_is_not_the_limit_is_not_called_the_limit() -> None:
    rows = diagnose(builders.profile(0, fetch_ms=10, step_ms=6, batches=150)).findings
    step = next(row for row in rows if row.cause == "not_loader_bound")
    assert "limit" not in step.title
    assert "keeps up" not in step.advice
