"""Page cache: what is cached is proven, and evicted pages are really gone."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_ioscope.storage import page_cache as kernel
from jupyter_ioscope.trials import page_cache
from jupyter_ioscope.trials.page_cache import evict, residency

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(sys.platform != "linux", reason="asks the Linux kernel"),
]


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "data.bin"
    path.write_bytes(os.urandom(1_000_000))
    path.read_bytes()
    return str(path)


def test_a_file_just_read_is_cached_and_an_evicted_one_is_not(file: str) -> None:
    warm = residency([file])
    assert (warm.fraction, warm.files, warm.size_bytes) == (1.0, 1, 1_000_000)
    evict([file])
    assert residency([file]).fraction < 0.05
    Path(file).read_bytes()
    assert residency([file]).fraction == 1.0


def test_mincore_agrees_with_cachestat(file: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(file, os.O_RDONLY)
    try:
        share = kernel._mincore(libc, fd, 1_000_000)
        told = kernel._cachestat(libc, fd)
    finally:
        os.close(fd)
    assert share == 1.0
    assert told in (None, 245)  # 1,000,000 bytes in pages of 4,096


def test_missing_files_are_passed_over(file: str) -> None:
    evict([file + ".gone"])
    assert residency([file + ".gone"]).method == ""
    assert "could not be proven" in residency([]).text()


def test_opened_data_files_are_learnt_and_code_is_not(file: str, tmp_path: Path) -> None:
    # In a process of its own: audit hooks cannot be removed.
    program = (
        "import sys\n"
        "from jupyter_ioscope.trials.page_cache import LearnFiles\n"
        "files = LearnFiles(sys.argv[2]); files.install()\n"
        "open(sys.argv[1], 'rb').close(); open(sys.argv[1] + '.new', 'w').write('x')\n"
        "import colorsys\n"
        "print(*files.found())\n"
    )
    command = [sys.executable, "-c", program, file, str(tmp_path / "opened")]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=180)
    assert out.stdout.split() == [file]


def test_mapped_files_are_seen_without_any_open(file: str) -> None:
    with mapped(file) as pages:
        assert file not in page_cache.mapped_files(())  # nobody has looked at it
        pages[0]
        assert file in page_cache.mapped_files(())
    assert file not in page_cache.mapped_files(())


@pytest.mark.parametrize("uses_it", [True, False])
def test_what_lies_mapped_in_the_users_process_counts_for_a_child_that_uses_it(
    file: str, uses_it: bool
) -> None:
    with mapped(file) as pages:
        pages[0]
        pid = os.fork()
        if pid == 0:
            status = 2
            with contextlib.suppress(Exception):
                if uses_it:
                    pages[500_000]
                status = int(file in page_cache.mapped_files(()))
            os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == int(uses_it)


@contextlib.contextmanager
def mapped(path: str) -> Iterator[mmap.mmap]:
    """A file that is mapped and not open: the descriptor that `mmap` keeps leads elsewhere."""
    with open(path, "rb") as opened:
        pages = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    with open(os.devnull, "rb") as nothing:
        for fd in map(int, os.listdir("/proc/self/fd")):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/self/fd/{fd}") == path:
                    os.dup2(nothing.fileno(), fd)
    with pages:
        yield pages
