"""Places that file systems of another kind, other users and odd names make: measured as any."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_ioscope import api
from jupyter_ioscope.errors import CaptureError, InputError
from jupyter_ioscope.storage import apart, filesystems, fio, own_engine, page_cache
from tests.io_causes import slow_mount
from tests.io_causes.cold_files import write_through
from tests.other_user import as_nobody

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only"),
]
needs_fuse = pytest.mark.skipif(bool(slow_mount.why_not()), reason=slow_mount.why_not() or "-")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
SIZE = 4 << 20


@pytest.fixture
def in_memory(tmp_path: Path) -> Iterator[Path]:
    """A file system that makes a file and then refuses O_DIRECT, as tmpfs before Linux 6.6."""
    point = tmp_path / "ramfs"
    point.mkdir()
    command = ["mount", "-t", "ramfs", "ramfs", str(point)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    yield point
    subprocess.run(["umount", "-l", str(point)], check=False)


def test_a_file_system_that_refuses_o_direct_only_after_making_the_file(in_memory: Path) -> None:
    name = in_memory / "new"
    for flags in (os.O_RDWR | os.O_CREAT | os.O_EXCL, os.O_RDONLY):
        file = own_engine.opened(str(name), flags)
        os.close(file.fd)
        assert not file.direct
    with pytest.raises(InputError, match="does not say how much room it has: name a file in it"):
        api.check_storage(in_memory)
    with pytest.raises(FileExistsError):
        own_engine.opened(str(name), os.O_RDWR | os.O_CREAT | os.O_EXCL)


def test_only_reads_that_are_not_judged_are_reasons_for_no_verdict(tmp_path: Path) -> None:
    holes = tmp_path / "holes"
    with holes.open("wb") as file:
        file.truncate(SIZE)
    found = api.check_storage(holes)
    read = found.timing("sequential read")
    assert read is not None
    if read.answered_by != "unproven":
        pytest.skip("this file system reads holes from the device")
    told = [reason for reason in found.reasons if "is not judged" in reason]
    assert {reason.partition(" is not")[0] for reason in told} == {"sequential read", "random read"}


@needs_fuse
def test_space_is_not_reserved_block_by_block_where_nobody_knows_how(tmp_path: Path) -> None:
    # 12,288 blocks of 20 ms would be silence, and silence is dangerous
    with slow_mount.slow_mount(tmp_path, write_s=0.02) as mount:
        found = api.check_storage(mount)
        assert os.listdir(mount) == []
    assert "does not answer" not in " ".join(found.reasons)
    written = found.timing("sequential write")
    assert written is not None
    assert written.p50_s >= 0.02


def test_a_colon_in_a_path_makes_no_other_file(tmp_path: Path) -> None:
    tool = fio.found()
    if tool is None:
        pytest.skip("fio is not installed")
    place = tmp_path / "2024-01-01T00:00" / "data"
    place.mkdir(parents=True)
    file = str(place / "large")
    jobs = (fio.Job("psync", "seqwrite", 1 << 20, 1),)
    fio.run(fio.command(tool, file, 1 << 20, jobs, 0.05, False), jobs, 60, str(place))
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        "2024-01-01T00:00",
        "data",
        "large",
    ]


def test_a_check_that_the_kernel_kills_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, children = apart._started, []

    def started(job: str, arguments: dict[str, Any]) -> subprocess.Popen[bytes]:
        children.append(real(job, arguments))
        return children[-1]

    def kill(row: dict[str, Any]) -> None:
        if row["step"] == "folder" and "path" in row:
            children[0].kill()

    monkeypatch.setattr(apart, "_started", started)
    with pytest.raises(CaptureError, match="exit code -9"):
        apart.run("check", 60, 60, kill, path=str(tmp_path), quick=True)
    assert os.listdir(tmp_path) == []


def test_a_mount_may_be_named_with_any_line_end_but_a_line_feed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "mountinfo"
    odd = "/data\r\x0b\u2028x"
    table.write_bytes(
        b"1 0 0:1 / / rw - ext4 /dev/a rw\n" + f"2 1 0:2 / {odd} rw - xfs /dev/b rw\n".encode()
    )
    monkeypatch.setattr(filesystems, "_MOUNTINFO", str(table))
    assert filesystems.of_path(odd + "/train").name == "XFS"


def test_a_folder_that_takes_no_files_is_told_before_a_baseline_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match="nothing may be written into the folder"):
        api.save_baseline(tmp_path, tmp_path / "base.json", seconds=600)
    assert os.listdir(tmp_path) == []


@as_root
def test_another_users_file_is_known_to_be_evicted_or_not(tmp_path: Path) -> None:
    file = tmp_path / "data"
    write_through(file, os.urandom(SIZE))
    file.chmod(0o644)
    fd = os.open(file, os.O_RDONLY)
    try:
        file.read_bytes()
        cached, method = as_nobody(lambda: page_cache.resident(fd, SIZE))
        if not method:
            pytest.skip("reads of this file system always wait")
        assert cached == 1.0
        shares = []
        for _ in range(5):  # a page that somebody else looks at just now stays
            page_cache.evict(fd)
            shares.append(as_nobody(lambda: page_cache.resident(fd, SIZE))[0])
        assert min(shares) <= page_cache.PROVEN_FRACTION
    finally:
        os.close(fd)


@as_root
def test_looking_leaves_the_page_cache_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "data"
    write_through(file, os.urandom(SIZE))
    fd = os.open(file, os.O_RDONLY)
    try:
        page_cache.evict(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        os.pread(fd, SIZE // 2, 0)
        before, method = page_cache.resident(fd, SIZE)
        share = page_cache._looked_at(fd, SIZE, page_cache.LOOKED_AT)
        after, _ = page_cache.resident(fd, SIZE)
    finally:
        os.close(fd)
    if share is None or not method:
        pytest.skip("this kernel does not say what its page cache holds")
    assert abs(share - before) < 0.2  # of 300 pages drawn at random
    assert abs(after - before) < 0.02


def test_a_file_of_several_pieces_is_asked_about_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "data"
    file.write_bytes(os.urandom(SIZE + 1))
    monkeypatch.setattr(page_cache, "_PIECE", 1 << 20)
    monkeypatch.setattr(page_cache, "_PIECES", 2)
    libc = ctypes.CDLL(None, use_errno=True)
    with file.open("rb") as opened:
        assert page_cache._mincore(libc, opened.fileno(), SIZE + 1) == 1.0
