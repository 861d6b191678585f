"""The health check of a place: what it measures, what it leaves, and what it says of bad places."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_ioscope import api
from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model.observed import FileUse
from jupyter_ioscope.model.storage import FileSystem, StorageCheck, Timing
from jupyter_ioscope.storage import (
    answered,
    for_loader,
    measure,
    own_engine,
    page_cache,
    thresholds,
)
from jupyter_ioscope.views.storage import check_html, check_text
from tests import builders, leftovers
from tests.io_causes import slow_mount, throttled
from tests.io_causes.cold_files import write_through

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only"),
]
needs_fuse = pytest.mark.skipif(bool(slow_mount.why_not()), reason=slow_mount.why_not() or "-")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
ROOT = str(Path(__file__).parents[1])
TINY = measure.Plan(2 << 20, 2 << 20, 0.05, 0.05, 3, 5, 0.05, 0.0)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "data"
    write_through(file, os.urandom(8 << 20))  # what is not on the disk yet is not evicted
    return file


def test_a_folder_is_measured_in_a_folder_of_its_own_and_left_as_it_was(data: Path) -> None:
    below = leftovers.everything_below()
    found = api.check_storage(data.parent)
    assert os.listdir(data.parent) == ["data"]
    assert leftovers.everything_below() <= below
    names = {row.name for row in found.timings}
    assert names == {
        "sequential write", "fsync", "create", "open", "stat", "sequential read", "random read",
    }  # fmt: skip
    assert 0 < found.written_bytes <= 64 << 20
    assert Path(found.work_folder).parent == data.parent.resolve()
    assert found.work_folder in "".join(found.notes)
    assert all(row.requests > 0 and 0 < row.p50_s <= row.p99_s <= row.worst_s
               for row in found.timings)  # fmt: skip


def test_the_quick_check_says_who_answered_each_read(data: Path) -> None:
    found = api.check_storage(data.parent)
    read = found.timing("sequential read")
    assert read is not None
    assert read.how
    if found.file_system.family == "local":
        assert read.answered_by == "device"
    assert found.verdict in ("healthy", "degraded", "dangerous")
    assert all(row.source and row.thresholds for row in found.judged)


def test_a_file_is_only_read(data: Path) -> None:
    before = (data.read_bytes(), os.stat(data).st_mtime_ns, os.listdir(data.parent))
    found = api.check_storage(data)
    assert (data.read_bytes(), os.stat(data).st_mtime_ns, os.listdir(data.parent)) == before
    assert found.kind == "file"
    assert found.written_bytes == 0
    assert {row.name for row in found.timings} == {"open", "sequential read", "random read"}


def test_memory_is_called_memory() -> None:
    found = api.check_storage("/dev/shm")
    read = found.timing("sequential read")
    assert read is not None
    assert (found.file_system.family, read.answered_by) == ("memory", "memory")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda place: place / "none", "there is no"),
        (lambda place: pipe(place / "p"), "is a pipe"),
        (lambda place: (place / "e").touch() or place / "e", "is empty"),
        (lambda place: (place / "s").write_text("x" * 9) and place / "s", "of 9 bytes only"),
        (lambda place: bound(place / "socket"), "is a socket"),
        (lambda place: Path("/dev/null"), "is a character device"),
        (lambda place: "", "give the path"),
        (lambda place: "a\0b", "give the path"),
        (lambda place: 7, "give the path"),
        (lambda place: (place / "x").touch() or place / "x" / "y", "Not a directory"),
    ],
)
def test_a_place_that_cannot_be_measured_is_told_in_a_sentence(
    tmp_path: Path, make: Any, reason: str
) -> None:
    path = make(tmp_path)
    with pytest.raises(InputError, match=reason) as caught:
        api.check_storage(path)
    assert "\n" not in str(caught.value)


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def bound(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
    assert stat.S_ISSOCK(path.stat().st_mode)
    return path


def test_an_object_store_is_described_and_not_measured() -> None:
    found = api.check_storage("s3://bucket/key")
    assert (found.verdict, found.file_system.family) == ("unknown", "object store")
    assert "not measured" in found.reasons[0]
    assert found.file_system.promises


def test_too_little_space_is_seen_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.statvfs(tmp_path)
    full = os.statvfs_result((*real[:4], 100, *real[5:]))
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    with pytest.raises(measure.Refused, match="free and the check wants"):
        measure.check(str(tmp_path), measure.QUICK, lambda *_, **__: None)
    assert os.listdir(tmp_path) == []


@contextlib.contextmanager
def mounted(point: Path, options: str) -> Iterator[None]:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(point)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(point)], check=False)


@as_root
def test_a_full_and_a_read_only_file_system_are_refused(tmp_path: Path) -> None:
    with mounted(tmp_path, "size=8m"), pytest.raises(InputError, match="name a file in it"):
        api.check_storage(tmp_path)
    with mounted(tmp_path, "ro"), pytest.raises(InputError, match="is read-only"):
        api.check_storage(tmp_path)


@as_root
def test_space_that_runs_out_in_the_midst_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "_refuse_folder", lambda *_: None)
    with mounted(tmp_path, "size=1m"):
        with pytest.raises(OSError, match="No space"):
            measure.check(str(tmp_path), TINY, lambda *_, **__: None)
        assert os.listdir(tmp_path) == []


@as_root
@pytest.mark.parametrize(
    ("path", "reason"), [("/usr", "may not be written to"), ("{tmp}/x", "no permission")]
)
def test_no_permission_is_said(tmp_path: Path, path: str, reason: str) -> None:
    tmp_path.chmod(0o700)
    assert reason in as_nobody(path.format(tmp=tmp_path))


def as_nobody(path: str) -> str:
    """Why a user without rights may not have `path` measured; "" if that user may."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setgid(65534)
        os.setuid(65534)
        try:
            measure.check(path, TINY, lambda *_, **__: None)
        except measure.Refused as refusal:
            os.write(write, str(refusal).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        text = said.read()
    os.waitpid(pid, 0)
    return text


@needs_fuse
def test_a_mount_with_5_ms_is_called_what_it_is_and_its_latency_read(data: Path) -> None:
    with slow_mount.slow_mount(data.parent, read_s=0.005) as mount:
        with pytest.raises(InputError, match="is read-only: name a file"):
            api.check_storage(mount)
        found = api.check_storage(mount / "data")
    assert found.file_system.name == "FUSE (slow)"
    small = found.timing("random read")
    assert small is not None
    assert small.p50_s >= 0.005
    assert found.verdict != "healthy"


@needs_fuse
def test_a_device_that_hangs_is_given_up_and_nothing_here_waits_for_it(data: Path) -> None:
    started = time.monotonic()
    with slow_mount.slow_mount(data.parent, read_s=600.0) as mount:
        found = api.check_storage(mount / "data", silence_s=1.0)
        assert time.monotonic() - started < 300  # of 600 for each read
        assert found.verdict == "dangerous"
        assert found.reasons[0] == "the storage does not answer: given up while reading in order"
        assert found.file_system.name == "FUSE (slow)"
    assert "does not answer" in check_text(found)


@needs_fuse
def test_a_place_that_does_not_even_answer_a_look_is_given_up(data: Path) -> None:
    with slow_mount.slow_mount(data.parent, look_up_s=3.0) as mount:
        found = api.check_storage(mount / "data", silence_s=1.0)
    # a busy machine may not even have started to look by then
    assert re.search(r"given up while (looking at the path|starting)$", found.reasons[0])


def test_a_throttled_device_is_dangerous(data: Path) -> None:
    reason = throttled.why_not(data.parent)
    if reason:
        pytest.skip(reason)
    with throttled.throttled(data.parent, bytes_per_s=20_000_000):
        found = api.check_storage(data.parent)
    assert found.verdict == "dangerous"
    assert found.reasons[0].startswith("sequential read")
    read = found.timing("sequential read")
    assert read is not None
    assert read.bytes_per_s < 40e6


CHECKS = f"""
import sys
sys.path[:0] = [{ROOT!r}]
from jupyter_ioscope.storage import apart
apart.run("check", 30, 60, path=sys.argv[1], quick=False)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_check_leaves_nothing(tmp_path: Path, number: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CHECKS, str(tmp_path)], stderr=subprocess.DEVNULL
    ) as p:
        until = time.monotonic() + 90
        while not os.listdir(tmp_path) and time.monotonic() < until:
            time.sleep(0.01)
        assert os.listdir(tmp_path)
        p.send_signal(number)
        p.wait(90)
    while os.listdir(tmp_path) and time.monotonic() < until:
        time.sleep(0.02)
    assert os.listdir(tmp_path) == []


def test_an_eviction_is_proven(data: Path) -> None:
    data.read_bytes()
    fd = os.open(data, os.O_RDONLY)
    try:
        before, method = page_cache.resident(fd, 8 << 20)
        after = 1.0
        for _ in range(5):  # a page that somebody else looks at just now stays
            page_cache.evict(fd)
            after = min(after, page_cache.resident(fd, 8 << 20)[0])
    finally:
        os.close(fd)
    if not method:
        pytest.skip("this kernel does not say what its page cache holds")
    assert before > 0.9
    assert after <= page_cache.PROVEN_FRACTION


def test_without_o_direct_the_file_is_evicted_before_each_read_and_that_is_proven(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_engine, "_DIRECT", 0)
    data.read_bytes()
    for _ in range(5):  # now and then a busy machine keeps a page: then that is what is said
        rows = checked_rows(data)
        assert set(rows) == {"sequential read", "random read"}
        for found in rows.values():
            if not found["method"]:
                pytest.skip("this kernel does not say what its page cache holds")
            assert not found["direct"]
            proven = found["resident"] <= page_cache.PROVEN_FRACTION
            assert (answered.by(found, place()).answered_by == "device") == proven
        if all(found["resident"] <= page_cache.PROVEN_FRACTION for found in rows.values()):
            break
    else:
        pytest.fail("the file was never evicted")
    for found in rows.values():
        if found["from_device"] >= 0 and api.check_storage(data).file_system.family == "local":
            assert found["from_device"] > 0


def checked_rows(data: Path) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}

    def say(step: str, **content: Any) -> None:
        if "from_device" in content:
            rows[step] = {**content, "timing": content["timing"]._asdict()}

    measure.check(str(data), TINY, say)
    return rows


def test_files_of_a_loader_on_several_mounts_are_told() -> None:
    profile = builders.profile()
    use = FileUse("/dev/shm/a", 1, 0, "fetch", "r", 1, 10, "tmpfs")
    both = dataclasses.replace(profile, files=(use, use._replace(path="/b")))
    rows = (timing("sequential read", 500e6), timing("random read"))
    told = list(for_loader.sentences(both, "/dev/shm", "/dev/shm", rows))
    assert told[0] == "1 of the 2 files that the loader opened lie in /dev/shm."
    assert "2 mounts" in told[1]


def row(direct: bool, resident: float = -1.0, from_device: int = 0) -> dict[str, Any]:
    timing = Timing("sequential read", 10, 1000, 1.0, 1e4, 0.1, 0.1, 0.1)._asdict()
    return {"timing": timing, "direct": direct, "resident": resident, "method": "cachestat",
            "from_device": from_device}  # fmt: skip


def place(family: str = "local") -> FileSystem:
    return FileSystem("/d", "/", "x", "X", family, "", False, (), ())


@pytest.mark.parametrize(
    ("measured", "family", "by"),
    [
        (row(True, from_device=10_000), "local", "device"),
        (row(True, from_device=0), "local", "unproven"),  # O_DIRECT accepted, and ignored
        (row(True, from_device=-1), "local", "unproven"),
        (row(True), "network", "device"),
        (row(False, 0.005), "local", "device"),
        (row(False, 0.4), "local", "page_cache"),
        (row(False, -1.0), "local", "unproven"),
        (row(True, from_device=10_000), "memory", "memory"),
    ],
)
def test_who_answered_is_told_by_evidence(measured: dict[str, Any], family: str, by: str) -> None:
    found = answered.by(measured, place(family))
    assert found.answered_by == by
    assert found.how


def timing(name: str, bytes_per_s: float = 0.0, latency_s: float = 1e-4, n: int = 500) -> Timing:
    size = 1 << 20 if name.startswith("sequential") else 4096
    return Timing(name, n, size, 1.0, bytes_per_s, latency_s, latency_s, latency_s, "device", "x")


def test_a_file_too_small_for_large_requests_is_not_judged_as_a_stream() -> None:
    row = timing("sequential read", 79e6)._replace(request_bytes=4096)
    assert not [one for one in thresholds.judge((row,), 0.0) if one.what == "sequential read"]


@pytest.mark.parametrize(
    ("bytes_per_s", "open_s", "random_s", "iowait", "verdict"),
    [
        (450e6, 99e-6, 1e-3, 0.0, "healthy"),
        (449e6, 99e-6, 1e-3, 0.0, "degraded"),
        (199e6, 99e-6, 1e-3, 0.0, "dangerous"),
        (900e6, 101e-6, 1e-3, 0.0, "degraded"),
        (900e6, 1.1e-3, 1e-3, 0.0, "dangerous"),
        (900e6, 99e-6, 13e-3, 0.0, "degraded"),
        (900e6, 99e-6, 16e-3, 0.0, "dangerous"),
        (900e6, 99e-6, 1e-3, 0.06, "degraded"),
        (900e6, 99e-6, 1e-3, 0.16, "dangerous"),
        (900e6, 99e-6, 1e-3, -1.0, "healthy"),
    ],
)
def test_thresholds_are_those_of_their_sources(
    bytes_per_s: float, open_s: float, random_s: float, iowait: float, verdict: str
) -> None:
    rows = (
        timing("sequential read", bytes_per_s),
        timing("open", latency_s=open_s),
        timing("random read", latency_s=random_s),
    )
    judged = thresholds.judge(rows, iowait)
    assert thresholds.overall(judged) == verdict
    assert bool(thresholds.reasons(judged)) == (verdict != "healthy")


def test_what_the_page_cache_answered_is_not_judged() -> None:
    cached = timing("sequential read", 9e9)._replace(answered_by="page_cache")
    judged = thresholds.judge((cached, timing("open")), 0.0)
    assert thresholds.overall(judged) == "unknown"


def test_few_slow_requests_are_judged_by_their_median() -> None:
    rows = (timing("random read", n=20)._replace(p50_s=5e-3, p99_s=40e-3),)
    assert thresholds.overall(thresholds.judge(rows, 0.0)) == "healthy"


def moments(*latencies_ms: float) -> Timing:
    """Random reads that took so long, in this order."""
    took = [int(value * 1e6) for value in latencies_ms]
    found = own_engine.timing("random read", took, 4096)
    return found._replace(answered_by="device")


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (moments(*[0.1] * 500), "healthy"),
        (moments(*[0.1] * 400, *[20.0] * 20, *[0.1] * 80), "unknown"),  # one bad moment
        (moments(*([0.1] * 19 + [20.0]) * 25), "dangerous"),  # all the time
        (moments(*([0.1] * 19 + [13.0]) * 20, *([0.1] * 4 + [20.0]) * 20), "degraded"),  # at least
        (moments(*[0.1] * 100, 20.0, 20.0), "unknown"),  # too few to know a 99th percentile
        (moments(0.1, 16.0, 16.0, 16.0), "unknown"),
        (moments(16.0, 16.0, 16.0, 16.0), "dangerous"),
    ],
)
def test_storage_is_only_as_bad_as_all_of_what_the_requests_can_tell(
    row: Timing, verdict: str
) -> None:
    judged = thresholds.judge((row,), 0.0)
    assert thresholds.overall(judged) == verdict
    told = " ".join(thresholds.reasons(judged))
    assert ("it cannot be told whether that is healthy" in told) == (verdict == "unknown")
    assert (" as far as this can tell" in told) == (verdict in ("unknown", "degraded"))


def test_what_others_wrote_a_moment_before_is_no_fault_of_the_storage() -> None:
    row = timing("random read")
    assert thresholds.overall(thresholds.judge((row,), 0.2, 0.0)) == "healthy"
    assert thresholds.overall(thresholds.judge((row,), 0.2, 0.16)) == "dangerous"


def test_a_stream_held_up_once_is_not_called_slow() -> None:
    took = [2_000_000] * 9 + [40_000_000]
    once = own_engine.timing("sequential read", took, 1 << 20)._replace(answered_by="device")
    assert once.bytes_per_s < 200e6
    (judged,) = [r for r in thresholds.judge((once,), 0.0) if r.what == "sequential read"]
    assert judged.verdict == "unknown"
    assert own_engine.timing("sequential read", [], 1 << 20).bytes_per_s_range == (0.0, 0.0)


class Told(own_engine.Line):
    """A line in which the first request stood all its time, the last hardly."""

    def __init__(self) -> None:
        super().__init__(-1)
        self._stood = iter((0, 10**12, 10**12, 10**12, 10**12, 10**12 + 10_000))

    def stood_ns(self) -> int:
        return next(self._stood)


def test_time_in_line_for_a_core_is_no_time_of_a_request() -> None:
    line = Told()
    took = own_engine.timed(lambda _: time.sleep(0.02), range(3), 10.0, line)
    assert took[0] == 0
    assert line.taken_ns >= 20_000_000
    assert took[1] >= 20_000_000
    assert took[2] >= 20_000_000  # so short a time in line is part of every request


def test_the_kernel_tells_how_long_a_thread_stood_in_line() -> None:
    with own_engine.line_for_a_core() as line:
        first = line.stood_ns()
        assert line.stood_ns() >= first >= 0


def test_a_profile_says_what_the_numbers_mean_for_its_loader() -> None:
    profile = builders.profile()
    rows = (timing("sequential read", 500e6), timing("random read"), timing("open"))
    told = list(for_loader.sentences(profile, "/data", "/", rows))
    assert told
    assert for_loader.request_s(4096 + 500_000, rows[0], rows[1]) == pytest.approx(1.1e-3)


def test_the_views_give_verdict_and_reasons_and_escape() -> None:
    found = StorageCheck(
        "/d<script>", "folder", True, place(), "dangerous", ("slow <b>", "also \x1b[31m red"),
        thresholds.judge((timing("sequential read", 1e6),), 0.0), (timing("sequential read", 1e6),),
        (), ("note",),
    )  # fmt: skip
    text = check_text(found)
    assert text.startswith("/d<script> (X) is dangerous: slow")
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100
    assert "health script" in text
    html = check_html(found)
    assert "<script" not in html
    assert "<b>also" not in html
