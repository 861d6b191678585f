"""What each process read, wrote, held in memory and kept open."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader, Dataset  # noqa: E402

from jupyter_ioscope.api import profile  # noqa: E402
from jupyter_ioscope.capture import procfs  # noqa: E402
from jupyter_ioscope.capture.observers.own_counters import (  # noqa: E402
    _private,
    read_own,
)
from jupyter_ioscope.capture.own_pages import sampled_private_bytes  # noqa: E402
from jupyter_ioscope.capture.process_use import (  # noqa: E402
    UNREADABLE,
    Counters,
    OwnCounters,
    ProcessUses,
    parse_io,
    private_bytes,
    uses,
)
from jupyter_ioscope.model.observed import ProcessUse  # noqa: E402
from jupyter_ioscope.model.profile import Profile  # noqa: E402

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs Linux's /proc"),
]
MB = 1 << 20
ITEMS = 24


class Reads(Dataset[Any]):
    """Item i is a megabyte read in four calls; it may keep private memory and open files."""

    def __init__(self, path: Path, keeps: bool = False, sleep_s: float = 0.0) -> None:
        self.path, self.keeps, self.sleep_s = str(path), keeps, sleep_s
        self.kept: list[Any] = []

    def __len__(self) -> int:
        return ITEMS

    def __getitem__(self, index: int) -> int:
        fd = os.open(self.path, os.O_RDONLY)
        total = sum(len(os.pread(fd, MB // 4, part * MB // 4)) for part in range(4))
        os.close(fd)
        if self.keeps:
            self.kept.append((bytearray(os.urandom(MB)), os.open(self.path, os.O_RDONLY)))
        time.sleep(self.sleep_s)
        return total


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "data").write_bytes(os.urandom(MB))
    return tmp_path / "data"


def run(dataset: Any, method: str | None = "fork", workers: int = 2) -> Profile:
    options = {"num_workers": workers, "multiprocessing_context": method} if method else {}
    with profile(stacks=False) as p:
        assert sum(map(int, DataLoader(dataset, None, **options))) == ITEMS * MB  # type: ignore[arg-type]
    assert p.profile is not None
    return p.profile


def of_workers(value: Profile) -> list[ProcessUse]:
    return [use for use in value.processes if use.worker >= 0]


@pytest.mark.parametrize(("method", "workers"), [("fork", 2), ("spawn", 1)])
def test_a_worker_reads_what_its_items_read(path: Path, method: str, workers: int) -> None:
    value = run(Reads(path), method, workers)
    rows = of_workers(value)
    assert [use.worker for use in rows] == list(range(workers))
    for use in rows:
        made = [fetch for fetch in value.fetches if fetch.pid == use.pid]
        assert use.read_bytes == pytest.approx(len(made) * MB, rel=0.05)
        assert use.read_calls >= 4 * len(made)
        assert use.first_ns <= made[0].start_ns
        assert use.last_ns >= made[-1].end_ns


def test_the_consumer_is_not_charged_for_its_workers(path: Path) -> None:
    consumer = run(Reads(path)).processes[0]
    assert consumer.pid == os.getpid()
    assert consumer.worker == -1
    assert 0 <= consumer.read_bytes < 2 * MB


def test_without_workers_the_consumer_reads(path: Path) -> None:
    value = run(Reads(path), None)
    assert value.processes[0].read_bytes == pytest.approx(ITEMS * MB, rel=0.05)
    assert of_workers(value) == []


def test_memory_and_open_files_of_a_worker_grow_as_it_keeps_them(path: Path) -> None:
    [use] = of_workers(run(Reads(path, keeps=True, sleep_s=0.12), workers=1))
    grown = use.last_private_bytes - use.first_private_bytes
    assert ITEMS / 3 * MB < grown < 1.5 * ITEMS * MB
    assert use.peak_open_files > ITEMS / 4
    assert use.open_files_limit == resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def bind(worker: int) -> None:
    """The second worker alone is bound, to the last core."""
    if worker == 1:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")
def test_a_worker_that_was_bound_to_some_cores_is_told_with_them(path: Path) -> None:
    options = {"num_workers": 2, "worker_init_fn": bind}
    with profile(stacks=False) as p:
        for _ in DataLoader(Reads(path, sleep_s=0.15), None, **options):  # type: ignore[arg-type]
            pass
    assert p.profile is not None
    own = os.sched_getaffinity(0)
    if len(own) < 2:
        pytest.skip("this process may use one core only")
    cores = {use.worker: use.bound_to for use in of_workers(p.profile)}
    assert cores == {0: (), 1: (max(own),)}


ROLLUP, STATM = b"Private_Dirty:  7 kB\n", b"0 50000 0 0"  # 200 MB: 4.5 ms to walk


@pytest.mark.parametrize(
    ("lasted_s", "faults", "known"),
    [
        (60.0, 100, -1),  # few pages: nothing to be found
        (60.0, 5_000, 7 * 1024),
        (0.6, 5_000, "some pages"),  # walking all would add 0.8 %
        (0.2, 100_000, -1),  # and even that takes too long
    ],
)
def test_private_memory_is_asked_for_as_far_as_the_loop_can_afford(
    monkeypatch: pytest.MonkeyPatch, lasted_s: float, faults: int, known: Any
) -> None:
    texts = {"/proc/self/statm": STATM, "/proc/self/smaps_rollup": ROLLUP}
    monkeypatch.setattr(procfs, "read", lambda path, _: texts[path])
    found = _private(int(lasted_s * 1e9), faults)
    assert found > 7 * 1024 if known == "some pages" else found == known


def test_a_sample_of_pages_tells_copied_memory_from_shared() -> None:
    """A child copies a third of what it shares with its parent, and says so of itself."""
    shared = bytearray(b"x" * 60 * MB)
    end, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            before = sampled_private_bytes(1e8)
            shared[: 20 * MB : 4096] = b"y" * len(range(0, 20 * MB, 4096))
            os.write(told, f"{before} {sampled_private_bytes(1e8)}".encode())
        finally:
            os._exit(0)
    os.close(told)
    before, after = map(int, os.read(end, 100).split())
    os.close(end)
    os.waitpid(child, 0)
    assert before >= 0
    assert 10 * MB < after - before < 30 * MB


def test_writes_are_counted(tmp_path: Path) -> None:
    with profile(stacks=False) as p:
        (tmp_path / "out").write_bytes(bytes(3 * MB))
    assert p.profile is not None
    assert p.profile.processes[0].write_bytes == pytest.approx(3 * MB, rel=0.05)
    assert p.profile.processes[0].write_calls >= 1


def test_counters_that_may_not_be_read_are_minus_one(tmp_path: Path) -> None:
    folder = tmp_path / "7"
    (folder / "fd").mkdir(parents=True)
    (folder / "stat").write_text("7 (python) S 1 " + "0 " * 40)
    seen = ProcessUses(str(tmp_path), root=7)
    seen.count([7])
    seen.count([7])
    [row] = uses(seen.packed(), {}, {7: 2}, pid=1)
    assert row.worker == 2
    assert row[4:12] == (-1,) * 8
    assert row.open_files_limit == -1
    seen.close()


def test_a_process_that_ended_keeps_its_last_counters_and_no_descriptor(path: Path) -> None:
    code = f"open({str(path)!r}, 'rb').read(); print(flush=True); input()"
    before = len(os.listdir("/proc/self/fd"))
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1) as child:
        assert child.stdout is not None
        child.stdout.readline()
        seen = ProcessUses("/proc", root=os.getpid())
        seen.count([os.getpid(), child.pid])
        child.communicate(b"\n")
    seen.count([os.getpid()])
    seen.count([os.getpid(), child.pid])
    packed = {item["pid"]: item for item in seen.packed()}
    seen.close()
    assert packed[child.pid]["last"].read_bytes > MB
    assert packed[child.pid]["parent"] == os.getpid()
    assert len(os.listdir("/proc/self/fd")) == before


def _packed(pid: int, first: Counters, last: Counters, parent: int = 1) -> dict[str, Any]:
    return {
        "pid": pid,
        "parent": parent,
        "first_ns": 100,
        "last_ns": 900,
        "first": list(first),
        "last": list(last),
        "memory_ns": [150, 400, 800],
        "memory_bytes": [5, 70, 90],
        "peak_open_files": 9,
        "open_files_limit": 1024,
    }


def _counters(value: int) -> Counters:
    return Counters(*[value] * 6)


def test_ended_children_are_taken_off_their_parent(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "20").mkdir()  # still there: not yet in its parent's counters
    packed = [
        _packed(1, _counters(1_000), _counters(1_500)),
        _packed(10, _counters(0), _counters(290)),
        _packed(20, _counters(0), _counters(70)),
        _packed(30, _counters(0), _counters(40), parent=10),
    ]
    own = {10: OwnCounters(300, _counters(20), 700, _counters(300))}
    rows = uses(packed, own, {10: 0, 20: 1}, pid=1, proc=str(tmp_path))
    assert [(row.pid, row.read_bytes) for row in rows] == [(1, 200), (30, 40), (10, 240), (20, 70)]
    worker = rows[2]
    assert (worker.first_ns, worker.last_ns) == (300, 700)
    assert (worker.first_private_bytes, worker.last_private_bytes) == (70, 90)


def test_a_worker_that_only_noted_itself_is_there(tmp_path: Path) -> None:
    own = {10: OwnCounters(300, _counters(20), 700, _counters(300))}
    [row] = uses([], own, {10: 4}, pid=1, proc=str(tmp_path))
    assert (row.worker, row.read_bytes, row.first_private_bytes) == (4, 280, -1)


def test_a_killed_worker_ends_with_what_the_helper_saw(tmp_path: Path) -> None:
    packed = [_packed(10, _counters(5), _counters(290))]
    own = {10: OwnCounters(300, _counters(20), 300, None)}
    [row] = uses(packed, own, {10: 0}, pid=1, proc=str(tmp_path))
    assert (row.read_bytes, row.last_ns) == (270, 900)


def test_damaged_texts_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "io-5-0.txt").write_bytes(b"\0\1\2")
    (tmp_path / "io-6-0.txt").write_bytes(b"")
    (tmp_path / "io-7-0.txt").write_bytes(b"12;rchar: 1|wchar: 2|syscr: 3|sys")
    assert read_own(str(tmp_path)) == {}
    assert parse_io(b"rchar: x") == UNREADABLE
    assert private_bytes(b"") == -1
    assert private_bytes(b"Private_Clean:  4 kB\nPrivate_Dirty:  6 kB\n") == 10 * 1024
