"""The causes of slow I/O that tests and `make accuracy` use are what they say."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.io_causes import cold_files, slow_mount, throttled
from tests.io_causes.orphan import ROOT
from tests.io_causes.slow_server import slow_server

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only"),
]

needs_fuse = pytest.mark.skipif(bool(slow_mount.why_not()), reason=slow_mount.why_not() or "-")


def took_s(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


@needs_fuse
def test_reads_of_a_slow_mount_wait_and_bring_what_the_folder_holds(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(os.urandom(50_000))
    with slow_mount.slow_mount(tmp_path, read_s=0.02) as mount:
        file = os.open(mount / "data", os.O_RDONLY)
        try:
            assert took_s(lambda: [os.pread(file, 100, 0) for _ in range(5)]) >= 5 * 0.02
        finally:
            os.close(file)
        assert (mount / "data").read_bytes() == (tmp_path / "data").read_bytes()
        with pytest.raises(OSError, match="Read-only"):
            (mount / "other").write_text("x")
    assert not mount.exists()


@needs_fuse
def test_looking_up_files_of_a_slow_mount_waits(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / str(number)).write_text("x")
    with slow_mount.slow_mount(tmp_path, look_up_s=0.02) as mount:
        assert took_s(lambda: [(mount / str(n)).read_text() for n in range(5)]) >= 5 * 0.02


@needs_fuse
def test_a_slow_mount_is_gone_when_its_process_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path\n"
        "from tests.io_causes.slow_mount import slow_mount\n"
        "with slow_mount(Path(sys.argv[1])) as mount:\n"
        "    print(mount, flush=True); time.sleep(60)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        mount = Path(process.stdout.readline().strip())
        assert os.path.ismount(mount)
        below = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        assert below == ""  # whoever serves the mount is nobody's child here
        process.send_signal(signal.SIGKILL)
    until = time.monotonic() + 20
    while os.path.ismount(mount) and time.monotonic() < until:
        time.sleep(0.02)
    assert not os.path.ismount(mount)
    mount.rmdir()


def test_the_slow_server_answers_late_and_is_gone_afterwards() -> None:
    with slow_server(0.02, size_bytes=300) as (host, port):
        connection = http.client.HTTPConnection(host, port)

        def ask() -> bytes:
            connection.request("GET", "/")
            return connection.getresponse().read()

        assert took_s(lambda: [ask() for _ in range(4)]) >= 4 * 0.02
        assert len(ask()) == 300
        connection.close()
    with pytest.raises(OSError, match="refused"):
        http.client.HTTPConnection(host, port).connect()


def test_an_evicted_file_is_not_in_the_page_cache_and_comes_back_by_reading(
    tmp_path: Path,
) -> None:
    path = tmp_path / "data"
    cold_files.write_through(path, os.urandom(64 * cold_files.PAGE_BYTES))
    if cold_files.resident_fraction(path) < 1:
        pytest.skip("this file system keeps nothing in the page cache")
    cold_files.evict([path])
    if cold_files.resident_fraction(path) == 1:
        pytest.skip("this file system lives in memory")
    assert cold_files.resident_fraction(path) == 0
    path.read_bytes()
    assert cold_files.resident_fraction(path) == 1


def test_a_throttled_device_gives_as_many_bytes_a_second_as_told(tmp_path: Path) -> None:
    reason = throttled.why_not(tmp_path)
    if reason:
        pytest.skip(reason)
    path = tmp_path / "data"
    cold_files.write_through(path, os.urandom(8 << 20))
    cold_files.evict([path])
    with throttled.throttled(tmp_path, bytes_per_s=16 << 20):
        slow_s = took_s(path.read_bytes)
        group = Path("/proc/self/cgroup").read_text()
    assert slow_s > 0.3  # half a second of 8 MiB; never less, however fast the device is
    assert "ioscope-test" in group
    assert "ioscope-test" not in Path("/proc/self/cgroup").read_text()
