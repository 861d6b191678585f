"""Page cache: what is cached is proven, and evicted pages are really gone."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
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
    import mmap

    with open(file, "rb") as opened:
        mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        assert file in page_cache.mapped_files(())
    finally:
        mapped.close()
    assert file not in page_cache.mapped_files(())
