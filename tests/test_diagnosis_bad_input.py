"""Odd loops: a stated doubt or a stated gap, never a confident wrong answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.diagnosis import Diagnosis
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.records import Batch
from tests import builders
from tests import work_values as values

DISK = {"cpu": 0.3, "disk": 0.7}


def judged(made: Profile) -> Diagnosis:
    """The diagnosis, in which no rule failed."""
    diagnosis = diagnose(made)
    assert [row for row in diagnosis.unknown if "it failed" in row.reason] == []
    return diagnosis


def adds_up(diagnosis: Diagnosis) -> None:
    rows = [*diagnosis.waits.workers, *filter(None, [diagnosis.waits.consumer])]
    for row in rows:
        assert sum(part.time_ns for part in row.parts) == pytest.approx(row.wall_ns, rel=0.02)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("batches", [1, 2, 3, 4])
def test_fewer_than_five_batches_are_too_few(batches: int, workers: int) -> None:
    diagnosis = judged(builders.profile(workers, batches=batches, states=DISK))
    assert "too few" in diagnosis.headline or "too short" in diagnosis.headline
    assert not diagnosis.findings
    assert "Run it over more batches" in diagnosis.detail


def test_hundreds_of_workers() -> None:
    made = builders.profile(
        300, batches=900, fetch_ms=40.0, step_ms=0.1, rate_hz=4.0, cpus=4, states=DISK
    )
    diagnosis = judged(made)
    assert len(diagnosis.waits.workers) == 300
    adds_up(diagnosis)


def test_samples_of_a_microsecond() -> None:
    made = builders.profile(2, batches=600, fetch_ms=0.008, step_ms=0.05, main_ms=0.3)
    diagnosis = judged(made)
    assert diagnosis.findings[0].cause == "workers_overhead"
    adds_up(diagnosis)


def test_samples_of_ten_seconds() -> None:
    slow = {"batch_size": 1, "fetch_ms": 10_000.0, "step_ms": 5.0, "rate_hz": 2.0}
    asleep = {"cpu": 0.01, "sleep": 0.99}
    many = judged(builders.profile(0, batches=12, states=asleep, hot="wait", **slow))  # type: ignore[arg-type]
    assert many.findings[0].cause == "no_workers_latency_bound"
    few = judged(builders.profile(0, batches=3, states=asleep, hot="wait", **slow))  # type: ignore[arg-type]
    assert few.headline == "Only 3 batches came: too few to say what limits the loop."
    assert not few.findings


def test_an_interval_from_nothing_to_everything_is_no_finding() -> None:
    rows = judged(builders.profile(2, batches=4, batch_size=1, fetch_ms=10_000, rate_hz=5)).findings
    assert not any(row.low <= 0 and row.high >= 1 for row in rows)


def test_counters_of_processes_that_may_not_be_read() -> None:
    made = values.profile((values.READ_LINE, 40), workers=2, states=DISK, step_ms=0.5)
    unread = tuple(
        row._replace(read_calls=-1, read_bytes=-1, device_read_bytes=-1, peak_open_files=-1)
        for row in made.processes
    )
    diagnosis = judged(builders.without(made, processes=unread))
    assert any("/proc/<pid>/io may not be read" in row.reason for row in diagnosis.unknown)
    assert diagnosis.findings[0].cause == "disk_latency"  # states tell it all the same


def test_no_control_group_says_nothing_of_a_quota() -> None:
    made = builders.profile(2, cpus=4, quota=1.0, batches=80)
    kept = {name: row for name, row in made.series.items() if not name.startswith("cgroup")}
    diagnosis = judged(builders.without(made, series=kept))
    assert any(row.rule == "cpu_quota" for row in diagnosis.unknown)
    assert "cpu_quota" not in {row.cause for row in diagnosis.findings}


def test_a_clock_that_jumps_in_the_middle() -> None:
    base = builders.profile(2, batches=80, states=DISK)
    middle = base.batches[40].wait_start_ns

    def late(row: Batch, by_ns: int) -> Batch:
        if row.wait_start_ns < middle:
            return row
        return row._replace(
            wait_start_ns=row.wait_start_ns + by_ns,
            wait_end_ns=row.wait_end_ns + by_ns,
            step_end_ns=row.step_end_ns + by_ns,
        )

    for by_ns in (3_600_000_000_000, -500_000_000):
        jumped = tuple(late(row, by_ns) for row in base.batches)
        diagnosis = judged(replace(base, batches=jumped))
        assert diagnosis.headline
        assert all(0 <= row.low <= row.high <= 1 for row in diagnosis.findings)
