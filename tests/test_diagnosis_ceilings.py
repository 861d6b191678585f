"""Ceilings: what each resource alone would allow, and which of them the loop runs into."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

import pytest

from jupyter_ioscope.diagnosis.ceilings import ceilings_of
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.throughput import throughput_of
from jupyter_ioscope.model.diagnosis import CEILINGS, Ceiling
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, Series
from tests import builders
from tests.simulator import PID, S


def ceilings(profile: Profile) -> dict[str, Ceiling]:
    return {row.resource: row for row in ceilings_of(Facts(profile))}


def lowest_over_reached(profile: Profile) -> tuple[str, float]:
    """The lowest ceiling, and its distance to the measured throughput."""
    facts = Facts(profile)
    reached = throughput_of(facts)
    assert reached is not None
    lowest = ceilings_of(facts)[0]
    return lowest.resource, lowest.samples_per_s / reached.samples_per_s


def test_each_ceiling_is_what_its_resource_allows() -> None:
    profile = builders.profile(
        2, fetch_ms=20, step_ms=4, main_ms=0.5, delay_ms=0, put_ms=0, batches=150, cpus=4
    )
    found = ceilings(profile)
    assert found["worker_pool"].samples_per_s == pytest.approx(2 * 8 / 0.020, rel=0.05)
    assert found["consumer"].samples_per_s == pytest.approx(8 / 0.004, rel=0.01)
    assert found["hand_over"].samples_per_s == pytest.approx(8 / 0.0005, rel=0.05)
    assert found["process"].samples_per_s == pytest.approx(8 / 0.0045, rel=0.05)
    assert found["cpu"].samples_per_s == pytest.approx(4 * 8 / 0.0247, rel=0.05)
    assert found["feeder"].samples_per_s == pytest.approx(2 * 8 / 0.0002, rel=0.1)
    assert not {"storage", "gil", "network", "cpu_left", "start_up"} & set(found)


def test_a_quota_lowers_the_ceiling_of_the_cpu() -> None:
    whole = ceilings(builders.profile(2, cpus=4))["cpu"]
    part = ceilings(builders.profile(2, cpus=4, quota=1.5))["cpu"]
    assert part.samples_per_s == pytest.approx(whole.samples_per_s * 1.5 / 4, rel=0.01)
    assert part.label == "CPU (1.5 cores)"
    assert "quota" in part.how
    assert "quota" not in whole.how


def test_cores_that_other_programs_take_lower_it_further() -> None:
    found = ceilings(builders.profile(2, cpus=4, others_cores=1.0, fetch_ms=40, batches=150))
    left = found["cpu_left"].samples_per_s / found["cpu"].samples_per_s
    assert left == pytest.approx(3 / 4, abs=0.1)
    assert "cpu_left" not in ceilings(builders.profile(2, cpus=4, batches=150))


def test_storage_has_a_ceiling_only_where_disk_time_was_measured() -> None:
    states = {"cpu": 0.2, "disk": 0.8}
    found = ceilings(builders.profile(2, states=states, batches=150))
    assert found["storage"].samples_per_s == pytest.approx(2 * 8 / 0.016, rel=0.15)
    assert "storage" not in ceilings(builders.profile(2, states=states, tier="in_process"))


def test_a_remote_store_has_a_ceiling_by_its_latency() -> None:
    found = ceilings(builders.profile(4, states={"cpu": 0.1, "network": 0.9}, batches=150))
    assert found["network"].samples_per_s == pytest.approx(4 * 8 / 0.018, rel=0.15)


# -- the lowest is what the loop runs into ------------------------------------------------------

BOUND: dict[str, tuple[dict[str, object], set[str]]] = {
    "CPU in workers": ({"fetch_ms": 30.0}, {"worker_pool"}),
    "latency": ({"fetch_ms": 30.0, "states": {"cpu": 0.05, "sleep": 0.95}}, {"worker_pool"}),
    "disk": ({"fetch_ms": 30.0, "states": {"disk": 1.0}}, {"worker_pool", "storage"}),
    "hand-over": ({"fetch_ms": 6.0, "main_ms": 15.0, "step_ms": 0.1}, {"hand_over", "process"}),
    "consumer": ({"fetch_ms": 2.0, "step_ms": 10.0}, {"consumer", "process"}),
    "step and hand-over": ({"fetch_ms": 4.0, "step_ms": 8.0, "main_ms": 8.0}, {"process"}),
    "one worker": ({"workers": 1, "fetch_ms": 10.0}, {"worker_pool"}),
    "uneven fetches in order": (
        {"workers": 4, "fetch_ms": 30.0, "fetch_cv": 0.8, "prefetch": 1},
        {"order"},
    ),
    "no workers": ({"workers": 0, "fetch_ms": 10.0, "step_ms": 0.2}, {"worker_pool", "process"}),
    "no workers, long step": ({"workers": 0, "fetch_ms": 10.0, "step_ms": 8.0}, {"process"}),
    "short epochs": (
        {"batches": 6, "epochs": 8, "fetch_ms": 4.0, "start_ms": 150.0, "entry_ms": 20.0},
        {"start_up"},
    ),
}


@pytest.mark.parametrize("name", BOUND)
@pytest.mark.parametrize("seed", range(3))
def test_the_lowest_ceiling_is_what_was_reached(name: str, seed: int) -> None:
    settings, resources = BOUND[name]
    values = {"workers": 2, "batches": 200, "seed": seed, "delay_ms": 0.1, **settings}
    resource, ratio = lowest_over_reached(builders.profile(**values))  # type: ignore[arg-type]
    assert ratio == pytest.approx(1.0, abs=0.15), (resource, ratio)
    assert resource in resources


def test_nothing_that_the_loop_did_is_above_a_ceiling() -> None:
    for settings, _ in BOUND.values():
        values = {"workers": 2, "batches": 200, **settings}
        _, ratio = lowest_over_reached(builders.profile(**values))  # type: ignore[arg-type]
        assert ratio > 0.95


# -- bandwidth ----------------------------------------------------------------------------------


def reading(
    states: dict[str, float], rates: Callable[[float], float], busy: float, fetched: int = 10**6
) -> Profile:
    """Four workers; the tree reads from the device at `rates` bytes/s, which is `busy`; a fetch
    brings `fetched` bytes of that."""
    base = builders.profile(
        4, states=states, fetch_ms=40, batches=200, step_ms=0.2, read_bytes=fetched
    )
    times = tuple(range(base.start_ns, base.end_ns, S // 4))
    read, total = [0.0], 0.0
    for t in times[1:]:
        total += rates((t - times[0]) / (times[-1] - times[0])) / 4
        read.append(total)
    used = tuple(busy * (t - times[0]) for t in times)
    series = {
        "tree_read_bytes": Series("tree_read_bytes", "bytes", "cumulative", "tree", times,
                                  tuple(read)),
        "machine_disk_busy_ns": Series("machine_disk_busy_ns", "ns", "cumulative", "machine",
                                       times, used),
    }  # fmt: skip
    return builders.without(base, series=MappingProxyType(series))


def test_a_saturated_device_gives_what_it_can() -> None:
    found = ceilings(reading({"cpu": 0.05, "disk": 0.95}, lambda _: 100e6, 0.98))
    bandwidth = found["storage_bandwidth"]
    assert bandwidth.samples_per_s == pytest.approx(found["worker_pool"].samples_per_s, rel=0.15)
    assert math.isfinite(bandwidth.high)


def test_a_rate_seen_for_a_moment_is_at_least_possible() -> None:
    value = reading({"cpu": 0.8, "disk": 0.2}, lambda part: 300e6 if part < 0.3 else 30e6, 0.4)
    bandwidth = ceilings(value)["storage_bandwidth"]
    assert bandwidth.high == math.inf
    assert "at least" in bandwidth.label


def test_an_even_rate_of_a_device_that_is_not_saturated_tells_nothing() -> None:
    value = reading({"cpu": 0.5, "disk": 0.5}, lambda _: 100e6, 0.95)
    assert "storage_bandwidth" in ceilings(value), "two readers on average, and busy all the time"
    idle = reading({"cpu": 0.5, "disk": 0.5}, lambda _: 100e6, 0.5)
    assert "storage_bandwidth" not in ceilings(idle)


def test_what_imports_read_is_no_rate_of_the_loop() -> None:
    value = reading({"cpu": 0.8, "disk": 0.2}, lambda part: 300e6 if part < 0.3 else 0.0, 0.1, 0)
    assert "storage_bandwidth" not in ceilings(value)
    hardly = builders.profile(2, states={"cpu": 0.99, "disk": 0.01}, batches=150)
    assert "storage" not in ceilings(hardly)


# -- GIL ----------------------------------------------------------------------------------------


def test_threads_that_share_the_gil_of_the_loop_share_a_ceiling() -> None:
    base = builders.profile(0, states={"cpu": 0.5, "gil": 0.5}, batches=150)
    consumer = base.threads[0]
    other = builders.replaced(
        consumer, tid=PID + 1, role="other", run_ns=consumer.run_ns,
        states=(STATES.index("running"),) * len(consumer.states),
    )  # fmt: skip
    found = ceilings(builders.without(base, threads=(consumer, other)))
    assert found["gil"].samples_per_s == pytest.approx(8 / 0.022, rel=0.15)


def test_threads_in_workers_have_one_gil_a_worker() -> None:
    base = builders.profile(2, states={"cpu": 0.5, "gil": 0.5}, batches=150)
    assert ceilings(base)["gil"].samples_per_s == pytest.approx(2 * 8 / 0.0104, rel=0.1)


# -- all of them --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOUND)
def test_every_ceiling_has_an_interval_a_sentence_and_a_known_name(name: str) -> None:
    values = {"workers": 2, "batches": 60, **BOUND[name][0]}
    for row in ceilings_of(Facts(builders.profile(**values))):  # type: ignore[arg-type]
        assert row.low <= row.samples_per_s <= row.high
        assert row.how.endswith(".")
        assert row.resource in CEILINGS


@pytest.mark.parametrize("tier", ["no_ptrace", "in_process"])
def test_less_evidence_gives_fewer_ceilings_and_the_same_lowest(tier: str) -> None:
    full = ceilings_of(Facts(builders.profile(2, batches=150)))
    less = ceilings_of(Facts(builders.profile(2, batches=150, tier=tier)))
    assert {row.resource for row in less} <= {row.resource for row in full}
    assert less[0].samples_per_s == pytest.approx(full[0].samples_per_s, rel=0.05)


def test_workers_from_before_the_profile_leave_the_ceilings_of_the_loop() -> None:
    value = builders.with_workers_before_profile(builders.profile(2, batches=100))
    found = ceilings(value)
    assert "consumer" in found
    assert "worker_pool" not in found


def test_a_profile_without_batches_has_none() -> None:
    assert ceilings_of(Facts(builders.empty_profile())) == ()


# -- real loaders -------------------------------------------------------------------------------

REAL = {
    "cpu in workers": {"worker_pool", "order", "cpu", "cpu_left"},
    "sleep in workers": {"worker_pool", "order"},
    "sleep without workers": {"worker_pool", "process"},
    "many tensors": {"hand_over", "process", "cpu_left"},
    "heavy step": {"consumer", "process"},
}


@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="states of threads are read from /proc")
@pytest.mark.parametrize("name", REAL)
def test_a_real_loader_runs_into_its_lowest_ceiling(name: str, tmp_path: Path) -> None:
    """In one of five runs: other programs may take the cores for the seconds of a run."""
    pytest.importorskip("torch")
    from tests.test_diagnosis_real import profiled

    seen = []
    for _ in range(5):
        seen.append(lowest_over_reached(profiled(name, tmp_path)))
        resource, ratio = seen[-1]
        if resource in REAL[name] and 0.8 < ratio < 1.2:
            return
    raise AssertionError(seen)


def test_threads_that_worked_before_the_loop_lower_no_ceiling_of_the_cpu() -> None:
    plain = builders.profile(0, fetch_ms=4, batches=60, before_ms=2_000, cpus=2)
    own = next(row for row in plain.threads if row.role == "consumer")
    loop_ns = min(row.wait_start_ns for row in plain.batches)
    helper = dataclasses.replace(
        own, tid=90_001, role="other", name="library", first_ns=plain.start_ns, last_ns=loop_ns,
        run_ns=1_500_000_000, run_queue_ns=0, sample_ns=(), states=(),
    )  # fmt: skip
    before = builders.without(plain, threads=(*plain.threads, helper))
    within = dataclasses.replace(helper, first_ns=loop_ns, last_ns=plain.end_ns, run_ns=240_000_000)
    beside = builders.without(plain, threads=(*plain.threads, within))
    usual = ceilings(plain)["cpu"].samples_per_s
    assert ceilings(before)["cpu"].samples_per_s == pytest.approx(usual, rel=0.02)
    assert ceilings(beside)["cpu"].samples_per_s < 0.7 * usual


def test_the_short_batch_at_the_end_of_an_epoch_lowers_no_ceiling() -> None:
    """Nine batches of 8 samples and one of 1, in every epoch."""
    whole = builders.profile(2, fetch_ms=16, fetch_cv=0.0, step_ms=2, batches=10, epochs=6)
    last = {row.task for row in whole.batches if row.task == 9}
    cut = builders.without(
        whole,
        batches=tuple(row._replace(samples=1) if row.task in last else row
                      for row in whole.batches),
        fetches=tuple(row._replace(samples=1, batch_bytes=row.batch_bytes // 8)
                      if row.task in last else row for row in whole.fetches),
    )  # fmt: skip
    before, after = ceilings(whole), ceilings(cut)
    for resource in ("worker_pool", "consumer", "hand_over"):
        assert after[resource].samples_per_s == pytest.approx(
            before[resource].samples_per_s, rel=0.05
        ), resource
    assert "1.20\xa0MB" in after["hand_over"].how
