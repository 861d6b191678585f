"""Files opened behind Python's back: seen by their descriptors, counted by inotify."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_ioscope.api import profile
from jupyter_ioscope.capture.held_files import HeldFiles, unpacked
from jupyter_ioscope.capture.shared_positions import same_open_file
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.model.observed import HeldFile

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux"),
]
HERE = os.getpid()


@pytest.fixture
def held() -> Iterator[HeldFiles]:
    made = HeldFiles("/proc", skip=())
    yield made
    made.close()


def rows(held: HeldFiles, folder: Path) -> dict[str, HeldFile]:
    found = unpacked(json.loads(json.dumps(held.packed())))
    return {Path(row.path).name: row for row in found if row.path.startswith(str(folder))}


def open_in_c(path: Path, times: int) -> None:
    """As a C library does: no audit event."""
    libc = ctypes.CDLL(None)
    for _ in range(times):
        os.close(libc.open(os.fsencode(path), os.O_RDONLY))


def test_a_held_file_is_seen_and_its_opens_are_counted(held: HeldFiles, tmp_path: Path) -> None:
    (tmp_path / "kept.h5").write_bytes(bytes(70))
    (tmp_path / "again.h5").write_bytes(bytes(7))
    with open(tmp_path / "kept.h5"), open(tmp_path / "again.h5"):
        held.tick([HERE])
        open_in_c(tmp_path / "again.h5", 300)
    found = rows(held, tmp_path)
    assert (found["kept.h5"].opens, found["kept.h5"].size_bytes) == (0, 70)
    assert found["again.h5"].opens == 300
    assert found["again.h5"].pids == (HERE,)
    assert (found["again.h5"].seen, found["again.h5"].looks) == (1, 1)


def test_opens_by_another_process_count_as_well(held: HeldFiles, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"")
    code = f"import sys\nfile = open({str(tmp_path / 'data')!r})\nprint(flush=True)\ninput()\n"
    code += f"for _ in range(50): open({str(tmp_path / 'data')!r}).close()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1) as child:
        assert child.stdout is not None
        child.stdout.readline()
        held.tick([child.pid])
        child.communicate(b"\n")
    assert rows(held, tmp_path)["data"].opens == 50
    held.tick([child.pid])  # gone


FORKED = """
import os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
child = os.fork()
own = os.open(sys.argv[2], os.O_RDONLY)
os.write(1, b"%d\\n" % os.getpid())
for line in sys.stdin:
    os.lseek(file, 10, os.SEEK_CUR)
    os.write(1, b"moved\\n")
"""


def test_a_position_shared_after_a_fork_is_told_from_files_opened_twice(
    held: HeldFiles, tmp_path: Path
) -> None:
    shared, own = tmp_path / "shared", tmp_path / "own"
    shared.write_bytes(bytes(9_000))
    own.write_bytes(bytes(9_000))
    child = subprocess.Popen(
        [sys.executable, "-c", FORKED, str(shared), str(own)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    pids = [int(child.stdout.readline()) for _ in range(2)]
    for _ in range(4):
        child.stdin.write("on\n")
        child.stdin.flush()
        child.stdout.readline()
        held._due_s = 0.0
        held.tick(pids)
    child.communicate()
    found = rows(held, tmp_path)
    assert set(found["own"].sharing) == set()
    if same_open_file(HERE, 0, HERE, 0):  # the kernel answers such questions here
        assert set(found["shared"].sharing) == set(pids)
        assert found["shared"].positions >= 2


def test_only_regular_files_are_held_and_nothing_is_left(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    os.mkfifo(tmp_path / "pipe")
    held = HeldFiles("/proc", skip=(str(tmp_path / "ours"),))
    (tmp_path / "ours").write_bytes(b"")
    fds = [
        os.open(tmp_path, os.O_RDONLY),
        os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK),
        os.open(tmp_path / "ours", os.O_RDONLY),
        os.open("/proc/self/stat", os.O_RDONLY),
    ]
    with tempfile.TemporaryFile(dir=tmp_path):  # has no name any more
        held.tick([HERE])
    assert rows(held, tmp_path) == {}
    for fd in fds:
        os.close(fd)
    held.close()
    held.close()
    assert set(os.listdir("/proc/self/fd")) == before


def test_where_inotify_is_not_to_be_had_the_count_is_unknown(
    held: HeldFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refuses:
        def inotify_init1(self, flags: int) -> int:
            return -1

        def inotify_add_watch(self, fd: int, path: bytes, mask: int) -> int:
            return -1

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Refuses())
    with open(tmp_path / "data", "w"):
        held.tick([HERE])
    assert rows(held, tmp_path)["data"].opens == -1


def test_a_name_of_any_bytes_is_text_in_the_end(held: HeldFiles, tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff\xfe"
    with open(path, "w"):
        held.tick([HERE])
    [row] = rows(held, tmp_path).values()
    assert row.path.endswith("\\udcff\\udcfe")
    row.path.encode()


class OpensInC:
    """Items read from one file: opened for each of them, or once and kept."""

    def __init__(self, path: Path, keeps: bool) -> None:
        self.path, self.keeps = path, keeps
        self.fd = -1

    def __len__(self) -> int:
        return 400

    def __getitem__(self, index: int) -> int:
        libc = ctypes.CDLL(None)
        if self.fd < 0:
            self.fd = libc.open(os.fsencode(self.path), os.O_RDONLY)
        time.sleep(0.004)
        size = len(os.pread(self.fd, 10, 0))
        if not self.keeps:
            libc.close(self.fd)
            self.fd = -1
        return size


@pytest.mark.parametrize("keeps", [False, True])
def test_workers_that_open_a_file_in_c_for_every_item_are_found(
    tmp_path: Path, keeps: bool
) -> None:
    data = pytest.importorskip("torch").utils.data
    (tmp_path / "data.h5").write_bytes(bytes(10))
    dataset = OpensInC(tmp_path / "data.h5", keeps)
    with profile(stacks=False) as p:
        loader = data.DataLoader(dataset, 4, num_workers=2, multiprocessing_context="fork")
        assert sum(int(batch.sum()) for batch in loader) == 4_000
    value = p.profile
    assert value is not None
    assert not [use for use in value.files if use.path.endswith("data.h5")]
    [row] = [row for row in Facts(value).storage.held if row.path.endswith("data.h5")]
    if keeps:
        assert row.opens_per_sample < 0.05
    else:
        assert 0.3 < row.opens_per_sample < 1.3
