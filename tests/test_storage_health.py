"""The health check of a place: what it measures, what it leaves, and what it says of bad places."""

from __future__ import annotations

import contextlib
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
from jupyter_ioscope.model.storage import FileSystem, Timing
from jupyter_ioscope.storage import (
    answered,
    measure,
    own_engine,
    page_cache,
)
from jupyter_ioscope.views.storage import check_text
from tests import leftovers
from tests.io_causes import slow_mount, throttled
from tests.io_causes.cold_files import write_through
from tests.other_user import as_nobody

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
    assert hash(found.timings)  # ranges are tuples again after their way through JSON


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
        (lambda place: Path("/proc/self/mem"), r"made by the kernel while it is read \(in /proc\)"),
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
    assert reason in as_nobody(lambda: refusal(path.format(tmp=tmp_path)))


def refusal(path: str) -> str:
    """Why `path` may not be measured; "" if it may."""
    try:
        measure.check(path, TINY, lambda *_, **__: None)
    except measure.Refused as refused:
        return str(refused)
    return ""


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
@pytest.mark.beside  # it only waits
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
@pytest.mark.beside  # it only waits
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
