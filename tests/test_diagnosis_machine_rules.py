"""Rules about the machine: quota, affinity; and the limits that capture notes."""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path

import pytest

from jupyter_ioscope.capture import machine_limits
from jupyter_ioscope.capture.machine import machine
from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.observed import ProcessUse
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Series
from tests import builders

IN_LINE = {"cpu": 0.3, "run_queue": 0.7}


def found(profile: Profile, cause: str) -> Finding | None:
    return next((row for row in diagnose(profile).findings if row.cause == cause), None)


def on(profile: Profile, **changes: object) -> Profile:
    return builders.without(
        profile,
        machine=dataclasses.replace(profile.machine, **changes),  # type: ignore[arg-type]
    )


def held_back(profile: Profile, fraction: float) -> Profile:
    """`profile` with a cgroup that was held back for `fraction` of the time in line."""
    waiting = sum(row.run_queue_ns for row in profile.threads)
    times = (profile.start_ns, profile.end_ns)
    series = Series(
        "cgroup_throttled_ns", "ns", "cumulative", "cgroup", times, (5.0, 5.0 + fraction * waiting)
    )
    return builders.without(profile, series={**profile.series, series.name: series})


# -- quota ----------------------------------------------------------------------------------------


def test_a_quota_that_holds_threads_back_is_named_before_the_workers_it_makes_too_many() -> None:
    profile = builders.profile(4, cpus=8, quota=1.0, states=IN_LINE, step_ms=0.5)
    first = diagnose(held_back(profile, 0.8)).findings[0]
    assert first.cause == "cpu_quota"
    assert "shows 8" in first.title
    assert "1 worker with one thread" in first.advice


@pytest.mark.parametrize("fraction", [0.0, 0.05])
def test_a_quota_that_is_not_reached_is_no_trouble(fraction: float) -> None:
    profile = builders.profile(4, cpus=8, quota=4.0, states=IN_LINE)
    assert found(held_back(profile, fraction), "cpu_quota") is None


def test_a_quota_above_the_cores_cannot_hold_anybody_back() -> None:
    profile = builders.profile(4, cpus=4, quota=8.0, states=IN_LINE)
    assert found(held_back(profile, 0.9), "cpu_quota") is None


def test_without_a_count_threads_that_the_machine_has_cores_for_tell_that_the_quota_holds() -> None:
    row = found(builders.profile(4, cpus=8, quota=1.0, states=IN_LINE, step_ms=0.5), "cpu_quota")
    assert row is not None
    assert row.low < 0.6 * row.share
    assert row.evidence[0].endswith("without the quota there would be 8.")


@pytest.mark.parametrize(("quota", "cpus"), [(4.0, 8), (1.0, 2)])
def test_without_a_count_a_line_with_another_reason_is_not_the_quotas(
    quota: float, cpus: int
) -> None:
    diagnosis = diagnose(builders.profile(4, cpus=cpus, quota=quota, states=IN_LINE))
    assert "cpu_quota" in {row.rule for row in diagnosis.unknown}


# -- affinity -------------------------------------------------------------------------------------


def test_a_process_that_was_pinned_after_its_start_is_told_to_take_its_cores_back() -> None:
    profile = on(
        builders.profile(2, cpus=1, states=IN_LINE, step_ms=0.5),
        cpus=8,
        cpus_of_parent=8,
        native_threads=(("OMP_PROC_BIND", "true"),),
    )
    first = diagnose(profile).findings[0]
    assert first.cause == "affinity"
    assert "sched_setaffinity" in first.advice
    assert "OMP_PROC_BIND=true is set." in first.evidence


@pytest.mark.parametrize("parent", [0, 2], ids=["unknown", "the same"])
def test_cores_that_were_never_given_are_not_asked_back(parent: int) -> None:
    profile = on(builders.profile(2, cpus=2, states=IN_LINE), cpus=8, cpus_of_parent=parent)
    assert found(profile, "affinity") is None


def bound(profile: Profile, *cores: tuple[int, ...]) -> Profile:
    """`profile` with workers that may use these cores only, the first worker the first ones."""
    nothing = (0,) * 8
    uses = tuple(
        ProcessUse(row.pid, row.worker, row.entered_ns, row.left_ns, *nothing, 8, 1024,
                   bound_to=cores[row.worker])
        for row in profile.workers
    )  # fmt: skip
    return builders.without(profile, processes=uses)


def test_workers_that_were_all_put_on_one_core_are_told_apart_from_heavy_work() -> None:
    crowded = {"cpu": 0.5, "run_queue": 0.5}
    first = diagnose(bound(builders.profile(2, states=crowded), (0,), (0,))).findings[0]
    assert (first.cause, first.resource) == ("affinity", "run_queue")
    assert "worker_init_fn" in first.advice
    assert "pinned to 1 of the 4 cores" in first.title


@pytest.mark.parametrize(
    "cores", [((0,), (1,)), ((), ()), ((0,), ())], ids=["one each", "unbound", "one only"]
)
def test_workers_with_a_core_each_lack_none(cores: tuple[tuple[int, ...], ...]) -> None:
    profile = builders.profile(2, states={"cpu": 0.5, "run_queue": 0.5})
    assert found(bound(profile, *cores), "affinity") is None


def test_a_pinned_process_that_never_waits_for_a_core_is_left_alone() -> None:
    profile = on(
        builders.profile(2, cpus=2, states={"cpu": 0.1, "network": 0.9}), cpus=8, cpus_of_parent=8
    )
    assert found(profile, "affinity") is None


# -- what capture notes ---------------------------------------------------------------------------


def test_thread_settings_are_noted_when_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "x" * 500)
    settings = dict(machine_limits.native_threads())
    assert settings["OMP_NUM_THREADS"] == "3"
    assert "MKL_NUM_THREADS" not in settings
    assert len(settings["TOKENIZERS_PARALLELISM"]) < 100


def test_torch_is_asked_only_where_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert not any(name.startswith("torch") for name, _ in machine_limits.native_threads())


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="Linux only")
def test_the_machine_tells_its_limits() -> None:
    here = machine()
    assert here.cpus_of_parent >= 1
    assert here.open_files_limit >= 0
    assert machine_limits.shm_bytes("/nowhere") == 0


def test_the_smallest_memory_limit_on_the_way_up_counts(tmp_path: Path) -> None:
    (tmp_path / "cgroup").write_text("0::/a/b\n")
    for folder, text in (("", "max"), ("a", "3000000000"), ("a/b", "8000000000")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "memory.max").write_text(text + "\n")
    read = machine_limits.memory_limit_bytes
    assert read(str(tmp_path), str(tmp_path / "cgroup")) == 3_000_000_000
    (tmp_path / "cgroup").write_text("4:memory:/c\n")
    (tmp_path / "memory" / "c").mkdir(parents=True)
    (tmp_path / "memory" / "c" / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert read(str(tmp_path), str(tmp_path / "cgroup")) == 0
    assert read(str(tmp_path), str(tmp_path / "nothing")) == 0
