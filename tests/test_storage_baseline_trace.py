"""Latencies of the device itself in a baseline: whose requests count, and what is said if none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jupyter_ioscope.block_trace import tracefs as instances
from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model.storage import Baseline, JobResult
from jupyter_ioscope.storage import baseline, baseline_check, baseline_trace, fio
from jupyter_ioscope.views.baseline import baseline_text, check_text
from tests.io_causes import throttled, tracefs

JOB = fio.Job("psync", "randread", 4096, 1)


def lines(*requests: tuple[str, int, str, int]) -> bytes:
    """(who, thread, read or write, microseconds at the device) of requests, one after the other."""
    text, at = "", 1_000_000
    for sector, (name, tid, letter, took) in enumerate(requests):
        for end, kind in ((f"[{name}]", "issue"), ("[0]", "complete")):
            who, size = (f"{name}-{tid}", "4096 ") if kind == "issue" else ("<idle>-0", "")
            text += f"  {who} [000] ..... {at // 10**6}.{at % 10**6:06}: block_rq_{kind}: "
            text += f"8,0 {letter} {size}() {sector * 8} + 8 be,0,4 {end}\n"
            at += took
    return text.encode()


class Instance:
    closed = missed = 0

    def __init__(self, text: bytes) -> None:
        self._pieces = [text]

    def lost(self) -> int:
        return Instance.missed

    def read(self) -> bytes:
        return self._pieces.pop() if self._pieces else b""

    def stop(self) -> None:
        pass

    def close(self) -> None:
        Instance.closed += 1


@pytest.fixture
def trace(monkeypatch: pytest.MonkeyPatch) -> Any:
    Instance.closed = Instance.missed = 0

    def rows(text: bytes, tids: set[int] | Exception, job: fio.Job = JOB) -> list[dict[str, Any]]:
        def run(_job: fio.Job, seconds: float) -> set[int]:
            assert seconds <= 1
            if isinstance(tids, Exception):
                raise tids
            return tids

        monkeypatch.setattr(instances, "find", lambda: "/nowhere")
        monkeypatch.setattr(instances, "Instance", lambda *args, **more: Instance(text))
        return list(baseline_trace.traced([job], run, 30.0, 1))

    return rows


MIXED = lines(
    ("fio", 5, "R", 40), ("fio", 6, "R", 60), ("backup", 7, "R", 9000), ("fio", 5, "W", 777)
)  # fmt: skip


def test_requests_of_fio_count_and_those_of_other_programs_do_not(trace: Any) -> None:
    assert trace(MIXED, set()) == [
        {"run": [["psync (device)", "randread", 4096, 1], 0.0, 0.0, 40e-6, 60e-6]}
    ]
    assert Instance.closed == 1


def test_requests_of_our_own_threads_are_known_by_their_ids(trace: Any) -> None:
    (row,) = trace(MIXED, {7})
    assert row["run"][3] == pytest.approx(9000e-6, rel=0.01)


def test_writes_are_told_from_reads(trace: Any) -> None:
    (row,) = trace(MIXED, set(), JOB._replace(pattern="randwrite"))
    assert row["run"][3] == pytest.approx(777e-6, rel=0.01)


def test_a_job_that_never_reached_the_device_is_said_to_be_missing(trace: Any) -> None:
    (row,) = trace(lines(("kworker/1:1", 3, "R", 40)), set())
    assert "no request of randread with psync" in row["missing"]


def test_a_job_that_fails_is_a_missing_row_and_leaves_no_trace(trace: Any) -> None:
    (row,) = trace(b"", InputError("fio failed: no space"))
    assert "fio failed: no space" in row["missing"]
    assert Instance.closed == 1


def test_a_full_buffer_is_told(trace: Any) -> None:
    trace(MIXED, set())
    Instance.missed = 7
    (row,) = trace(MIXED, set())
    assert "the first 2 requests only" in row["missing"]
    assert row["run"][3] == pytest.approx(40e-6)


def test_a_trace_that_breaks_takes_nothing_else_along(
    trace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_self: Instance) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Instance, "read", broken)
    (row,) = trace(MIXED, set())
    assert "Input/output error" in row["missing"]
    assert Instance.closed == 1


def test_without_rights_the_reason_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> str:
        raise instances.NotHereError("tracefs is not mounted here")

    monkeypatch.setattr(instances, "find", refuse)
    (row,) = baseline_trace.traced([JOB], lambda job, seconds: set(), 1.0, 3)
    assert row["missing"] == "latency of the device itself: tracefs is not mounted here"


def test_the_time_that_is_announced_holds_the_traced_runs() -> None:
    options = baseline.Options(repeats=5)
    traced = options._replace(block_trace=True)
    more_s = baseline.expected_s([JOB], traced) - baseline.expected_s([JOB], options)
    assert more_s == pytest.approx(3 * 0.65)


def job(engine: str, p99_s: float, speed: float) -> JobResult:
    rates = (speed, speed, speed, speed / 4096)
    return JobResult(engine, "randread", 4096, 1, 3, *rates, p99_s / 2, p99_s, p99_s, p99_s)


def test_a_late_job_is_told_with_what_the_device_itself_took() -> None:
    jobs = (job("psync", 20e-3, 1e6), job("psync (device)", 140e-6, 0.0))
    found = Baseline("/data", "2026-01-01T00:00:00Z", "fio-3.33", True, (), jobs)
    check = baseline_check.compare(found, found, "b.json")
    assert [row.verdict for row in check.rows] == ["degraded", "same"]
    text = check_text(check).replace("\u00a0", " ")
    assert "99th percentile 20 ms (the device itself: 140 µs)" in text
    (line,) = (line for line in baseline_text(found).splitlines() if "psync (device)" in line)
    assert line.split()[-6:-4] == ["–", "–"]


REAL = """
import json, os
from jupyter_ioscope import api
steps = []
found = api.save_baseline(
    PLACE, FILE, seconds=0.05, repeats=1, size_bytes=16 << 20, engine="own", block_trace=True,
    on_step=steps.append,
)
print(json.dumps({
    "jobs": [[row.engine, row.pattern, row.p50_s, row.p99_s] for row in found.jobs],
    "missing": found.not_measured, "last": steps[-2:], "direct": found.direct,
    "left": [name for name in os.listdir(FOLDER + "/instances") if name.startswith("ioscope-")],
    "files": os.listdir(PLACE),
}))
"""


@pytest.mark.timeout(150)
def test_a_real_baseline_has_the_devices_latencies_and_leaves_nothing(tmp_path: Path) -> None:
    folder, place = tmp_path / "tracing", tmp_path / "place"
    folder.mkdir()
    place.mkdir()
    if not throttled.device_of(place):
        pytest.skip(f"no block device lies below {place}")
    if reason := tracefs.why_not(folder):
        pytest.skip(reason)
    names = f"PLACE, FOLDER = {str(place)!r}, {str(folder)!r}; FILE = {str(tmp_path / 'b')!r}\n"
    done = tracefs.run(folder, names + REAL)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    if not found["direct"]:
        pytest.skip("this file system takes no O_DIRECT")
    assert found["missing"] == []
    rows = {(engine, pattern): (p50, p99) for engine, pattern, p50, p99 in found["jobs"]}
    traced = {pattern: row for (engine, pattern), row in rows.items() if "(device)" in engine}
    assert sorted(traced) == ["randread", "randwrite", "seqread", "seqwrite"]
    assert all(0 < p50 <= p99 for p50, p99 in traced.values())
    assert found["left"] == []
    assert found["files"] == []
    assert any("16 of 16 runs" in step for step in found["last"])
