"""Storage baselines: fio's output, saving, and what a later measurement is compared with."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from jupyter_ioscope import api
from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model.storage import Baseline, Circumstance, JobResult
from jupyter_ioscope.storage import baseline, baseline_check, baseline_file, fio, own_engine
from jupyter_ioscope.views.baseline import (
    baseline_html,
    baseline_text,
    check_headline,
    check_html,
    check_text,
)
from tests import leftovers

JOBS = (fio.Job("psync", "randread", 4096, 1), fio.Job("psync", "seqwrite", 1 << 20, 1))


def fio_job(kind: str, unit: str = "clat_ns", scale: int = 1000, **changes: Any) -> dict[str, Any]:
    empty = {"total_ios": 0, "bw_bytes": 0, "bw": 0, "iops": 0.0, unit: {"mean": 0.0}}
    latency = {"mean": 80.0 * scale, "percentile": {
        "50.000000": 70 * scale, "99.000000": 900 * scale}}  # fmt: skip
    busy = {"total_ios": 500, "bw_bytes": 40_960_000, "bw": 40_000, "iops": 10_000.0, unit: latency}
    sides = {"read": empty, "write": empty, kind: busy}
    return {"jobname": kind, "error": 0, **sides, **changes}


def fio_text(**changes: Any) -> str:
    return json.dumps({"fio version": "fio-3.33", "jobs": [
        fio_job("read", **changes), fio_job("write", **changes)]})  # fmt: skip


def test_fios_json_gives_bandwidth_and_percentiles_behind_its_notes() -> None:
    note = "note: both iodepth >= 1 and synchronous I/O engine are selected\n"
    read, write = fio.parse(note + fio_text(), JOBS)
    assert (read.job, write.job) == JOBS
    assert read.bytes_per_s == 40_960_000
    assert (read.p50_s, read.p99_s) == pytest.approx((70e-6, 900e-6))
    assert write.requests_per_s == 10_000


def test_old_fio_gave_microseconds_and_kibibytes() -> None:
    jobs = [fio_job(kind, "clat", 1) for kind in ("read", "write")]
    for job in jobs:
        for side in ("read", "write"):
            del job[side]["bw_bytes"]
    read, _ = fio.parse(json.dumps({"jobs": jobs}), JOBS)
    assert read.p50_s == pytest.approx(70e-6)
    assert read.bytes_per_s == 40_000 * 1024


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "cannot be read"),
        ("fio: pid=1, err=22", "cannot be read"),
        (fio_text()[:-40], "cannot be read"),
        ("[]", "cannot be read"),
        ("{}", "cannot be read"),
        ('{"jobs": []}', "0 jobs where 2"),
        ('{"jobs": [1, 2]}', "cannot be read"),
        (fio_text(error=5), "error 5"),
        (json.dumps({"jobs": [fio_job("write"), fio_job("write")]}), "no request"),
        ("{" * 100_000, "cannot be read"),
    ],
)
def test_malformed_output_of_fio_is_refused_in_a_sentence(text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        fio.parse(text, JOBS)


def test_what_is_not_fio_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not fio"):
        fio.version("/bin/true")
    with pytest.raises(InputError, match="does not run"):
        fio.version(str(tmp_path / "none"))


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 3", "fio failed: exit code 3"),
        ("kill -9 $$", "fio failed: killed by signal 9"),
        (r"printf '\377\376 no space' >&2; exit 1", "fio failed: .* no space"),
        (r"printf '\377\376{\377'", "is not its JSON"),
    ],
)
def test_a_fio_that_dies_or_prints_bytes_is_told_in_a_sentence(
    tmp_path: Path, script: str, reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        fio.run(["/bin/sh", "-c", script], JOBS, 30, str(tmp_path))


def job(speed: float = 500e6, spread: float = 0.02, p99_s: float = 1e-3, **more: Any) -> JobResult:
    made = JobResult(
        "psync", "randread", 4096, 1, 5, speed, speed * (1 - spread), speed * (1 + spread),
        speed / 4096, 80e-6, p99_s, p99_s, p99_s,
    )  # fmt: skip
    return made._replace(**more)


def saved(*jobs: JobResult, **changes: str) -> Baseline:
    facts = {"tool": "fio", "file system": "ext4", "cores": "8", **changes}
    rows = tuple(Circumstance(name, value, True) for name, value in facts.items())
    kernel = Circumstance("kernel", changes.get("kernel", "Linux 6.1"), False)
    return Baseline("/data", "2026-01-01T00:00:00Z", "fio-3.33", True,
                    (*[row for row in rows if row.name != "kernel"], kernel), jobs)  # fmt: skip


@pytest.mark.parametrize(
    ("now", "verdict"),
    [
        (job(), "same"),
        (job(500e6 * 0.93, 0.005), "warning"),
        (job(500e6 * 0.90, 0.005), "degraded"),
        (job(500e6 * 0.90, 0.15), "same"),  # the repeats overlap: not told apart
        (job(500e6 * 1.2, 0.005), "faster"),
        (job(p99_s=13e-3), "warning"),
        (job(p99_s=16e-3), "degraded"),
    ],
)
def test_a_change_counts_by_its_size_and_beyond_the_spread(now: JobResult, verdict: str) -> None:
    found = baseline_check.compare(saved(job()), saved(now), "file")
    assert found.verdict == verdict
    assert (verdict == "same") or found.rows[0].reasons


def test_one_run_of_each_job_is_said_to_tell_no_spread_and_no_change() -> None:
    once, often = saved(job(repeats=1)), saved(job())
    said = [baseline_check.compare(*pair, "f").notes for pair in ((once, often), (often, often))]
    assert "of jobs that ran once" in said[0][0]
    assert said[1] == ()
    slow = job(500e6 / 3, 0.0, repeats=1)
    found = baseline_check.compare(often, saved(slow), "f")
    assert (found.verdict, found.rows[0].told_apart) == ("same", False)
    assert "it ran once: not told apart" in found.rows[0].reasons[0]
    assert baseline_check.compare(often, saved(slow._replace(repeats=2)), "f").verdict == "degraded"


def test_late_large_requests_are_no_reason() -> None:
    large: dict[str, Any] = {"pattern": "seqwrite", "block_bytes": 1 << 20, "p99_s": 30e-3}
    found = baseline_check.compare(saved(job(**large)), saved(job(**large)), "file")
    assert found.verdict == "same"


def test_thresholds_can_be_chosen() -> None:
    strict = baseline_check.Thresholds(0.5e-3, 0.9e-3, 0.05, 0.08)
    assert baseline_check.compare(saved(job()), saved(job()), "f", strict).verdict == "degraded"
    for wrong in ((0.0, 1, 1, 1), (2.0, 1.0, 0.1, 0.2), (1, 1, float("nan"), 1)):
        with pytest.raises(InputError):
            baseline_check.Thresholds(*wrong).checked()


@pytest.mark.parametrize("change", [{"tool": "own"}, {"file system": "NFS 4.2"}, {"cores": "2"}])
def test_unlike_circumstances_are_not_compared(change: dict[str, str]) -> None:
    with pytest.raises(InputError, match=next(iter(change))):
        baseline_check.compare(saved(job()), saved(job(), **change), "file")


def test_unlike_circumstances_are_told_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    baseline_file.write(saved(job()), tmp_path / "base.json")
    monkeypatch.setattr(baseline, "measure", lambda *_: pytest.fail("it was measured"))
    monkeypatch.setattr(baseline, "_cores", lambda: 3)
    with pytest.raises(InputError, match="cores was 8, is"):
        api.check_baseline(tmp_path, tmp_path / "base.json", engine="own")


def test_a_new_kernel_is_noted_and_compared() -> None:
    found = baseline_check.compare(saved(job()), saved(job(), kernel="Linux 6.2"), "file")
    assert any("kernel was Linux 6.1, is Linux 6.2" in note for note in found.notes)


def test_a_baseline_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    file = tmp_path / "base.json"
    made = dataclasses.replace(saved(job(), job(depth=16)), not_measured=("io_uring: no",))
    baseline_file.write(made, file)
    assert baseline_file.read(file) == made
    assert os.listdir(tmp_path) == ["base.json"]
    with pytest.raises(InputError, match="cannot be written"):
        baseline_file.write(made, tmp_path / "none" / "base.json")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not complete JSON"),
        ("[1]", "no storage baseline"),
        ('{"kind": "ioscope profile"}', "no storage baseline"),
        ('{"kind": "ioscope storage baseline", "format": 99}', "format 99"),
        ('{"kind": "ioscope storage baseline", "format": 1}', "damaged"),
        ('{"kind": "ioscope storage baseline", "format": 1, "baseline": {"path": 3}}', "damaged"),
    ],
)
def test_foreign_and_damaged_files_are_refused(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "base.json"
    file.write_text(text)
    with pytest.raises(InputError, match=reason):
        baseline_file.read(file)
    with pytest.raises(InputError, match="save one first"):
        baseline_file.read(tmp_path / "none")


@pytest.mark.parametrize(
    "damage",
    [
        {"bytes_per_s": float("nan")}, {"p99_s": -1.0}, {"bytes_per_s_low": 9e99}, {"repeats": 0},
        {"requests_per_s": float("inf")},
    ],
)  # fmt: skip
def test_numbers_that_nothing_can_be_worse_than_are_refused(
    tmp_path: Path, damage: dict[str, Any]
) -> None:
    file = tmp_path / "base.json"
    baseline_file.write(saved(job()), file)
    document = json.loads(file.read_text())
    jobs = document["baseline"]["jobs"]
    for name, value in damage.items():
        jobs[name][0] = value
    file.write_text(json.dumps(document))
    with pytest.raises(InputError, match="is damaged: randread with psync has impossible numbers"):
        baseline_file.read(file)


def test_a_baseline_that_says_nothing_of_its_circumstances_is_not_compared() -> None:
    bare = dataclasses.replace(saved(job()), circumstances=())
    with pytest.raises(InputError, match="was unknown, is"):
        baseline_check.compare(bare, saved(job()), "b.json")


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("engine", "repeats"), [("own", 2), ("fio", 1)])
def test_a_folder_is_measured_saved_and_checked(tmp_path: Path, engine: str, repeats: int) -> None:
    if engine == "fio" and shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    file = tmp_path / "base.json"
    how: dict[str, Any] = {
        "seconds": 0.05, "repeats": repeats, "size_bytes": 16 << 20, "engine": engine}  # fmt: skip
    before = leftovers.everything_below()
    told: list[str] = []
    first = api.save_baseline(tmp_path, file, **how, on_step=told.append)
    assert told[0].startswith("measuring takes about ")
    runs = repeats * len(first.jobs)
    assert told[-1].endswith(f"{runs} of {runs} runs done") or first.not_measured
    assert leftovers.everything_below() <= before
    assert first.tool.startswith("fio" if engine == "fio" else "ioscope's own engine")
    patterns = {row.pattern for row in first.jobs}
    assert patterns == {"randread", "randwrite", "seqread", "seqwrite"}
    assert all(row.bytes_per_s > 0 and 0 < row.p50_s <= row.p99_s for row in first.jobs)
    assert os.listdir(tmp_path) == ["base.json"]
    second = api.check_baseline(tmp_path, file, **how, p99_s=(9.0, 9.0), loss=(0.99, 0.999))
    assert second.verdict in ("same", "faster")  # nothing loses 99 % or waits for 9 s
    assert {row.job.key for row in second.rows} == {row.key for row in first.jobs}
    with pytest.raises(InputError, match="size of the file"):
        api.check_baseline(tmp_path, file, **{**how, "size_bytes": 32 << 20})


@pytest.mark.timeout(240)
def test_an_fio_that_fails_leaves_nothing_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "bin" / "fio"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho 'fio: engine not loadable' >&2; exit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(fio, "found", lambda: str(broken))
    place = tmp_path / "data"
    place.mkdir()
    options = baseline.Options(seconds=0.05, repeats=1, size_bytes=16 << 20)
    with pytest.raises(InputError, match="engine not loadable"):
        baseline.measure(place, options)
    assert os.listdir(place) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"seconds": 0.0}, "seconds"),
        ({"repeats": 0}, "repeats"),
        ({"size_bytes": 5}, "size_bytes"),
        ({"engine": "dd"}, "engine"),
    ],
)
def test_options_out_of_range_are_refused(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        api.save_baseline(tmp_path, tmp_path / "f", **change)


def test_a_folder_without_room_is_not_sent_to_a_file(tmp_path: Path) -> None:
    options = baseline.Options(size_bytes=1 << 40)
    with pytest.raises(InputError, match="give a folder that can be written to, or a smaller"):
        baseline.measure(tmp_path, options)


def test_a_file_has_no_baseline(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(b"x" * 10_000)
    with pytest.raises(InputError, match="is a file"):
        api.save_baseline(file, tmp_path / "base.json")


def test_the_headline_is_the_largest_change_and_its_reason() -> None:
    large: dict[str, Any] = {"pattern": "seqread", "block_bytes": 1 << 20}
    before = saved(job(), job(**large))
    now = saved(job(500e6 * 0.9, 0.005), job(500e6 * 0.5, 0.005, **large))
    found = baseline_check.compare(before, now, "file")
    assert check_headline(found).endswith(
        "seqread 1\u00a0MiB (psync, depth 1), 50\u00a0% less bandwidth"
    )
    late = baseline_check.compare(saved(job()), saved(job(500e6 * 0.9, 0.15, 16e-3)), "file")
    assert late.rows[0].reasons[0].startswith("99th percentile")  # not that of a smaller matter


def test_scattered_offsets_are_all_of_them_in_another_order() -> None:
    found = list(own_engine.scattered(1000 * 4096 + 5, 4096, seed=1))
    assert sorted(found) == [number * 4096 for number in range(1000)]
    assert found != sorted(found)
    again = own_engine.scattered(2 * 4096, 4096, seed=1, again=True)
    assert sorted(next(again) for _ in range(4)) == [0, 0, 4096, 4096]


def test_a_thread_that_fails_holds_up_no_other(tmp_path: Path) -> None:
    def make(fd: int, number: int) -> Any:
        if number == 1:
            raise ValueError("no more")
        return (lambda offset: None), [0]

    (tmp_path / "file").write_bytes(bytes(4096))
    with pytest.raises(ValueError, match="no more"):
        own_engine.at_depth(str(tmp_path / "file"), os.O_RDONLY, make, 3, 0.01)


def test_the_views_say_the_verdict_and_escape() -> None:
    found = baseline_check.compare(saved(job()), saved(job(400e6, 0.01)), "<b>file")
    assert check_text(found).startswith(
        "/data is degraded: randread 4\u00a0KiB (psync, depth 1), 20"
    )
    for text in (check_text(found), baseline_text(found.now)):
        assert max(map(len, text.splitlines())) <= 100
    assert "<b>file" not in check_html(found)
    assert "must be the same" in baseline_html(found.now)


@pytest.mark.parametrize(
    ("p99_s", "loss", "reason"),
    [
        (3, (0.05, 0.08), "p99_s is 3: give two numbers"),
        ((0.01, 0.02), (0.05,), "loss is"),
        ((0.01, 0.02), ("a", "b"), "loss_warning is 'a'"),
        ((0.02, 0.01), (0.05, 0.08), "comes after"),
    ],
)
def test_thresholds_that_are_none_are_named(p99_s: object, loss: object, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        baseline_check.thresholds_of(p99_s, loss)
