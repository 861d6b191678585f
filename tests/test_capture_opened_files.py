"""Which files are opened, how often and when: in the profiled process and in its workers."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader, Dataset, IterableDataset  # noqa: E402

from jupyter_ioscope.api import profile  # noqa: E402
from jupyter_ioscope.capture.observers import opened_files  # noqa: E402
from jupyter_ioscope.capture.observers._file_kinds import Mounts, file_uses  # noqa: E402
from jupyter_ioscope.capture.observers._open_counts import (  # noqa: E402
    MAX_PATHS,
    MORE,
    KeptCounts,
    OpenCounts,
    read_kept,
)
from jupyter_ioscope.model.observed import FileUse  # noqa: E402
from jupyter_ioscope.model.profile import Profile  # noqa: E402

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.second,
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
]
FILES = 1_000


class OneEach(Dataset[Any]):
    """Item i is read from a file of its own."""

    def __init__(self, folder: Path, count: int = FILES) -> None:
        self.folder, self.count = str(folder), count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        with open(f"{self.folder}/{index:05d}.bin", "rb") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)


class OneForAll(OneEach):
    """Every item opens the same file again."""

    def __getitem__(self, index: int) -> Any:
        return super().__getitem__(0)


class Killed(OneEach):
    """The last item takes its worker down."""

    def __getitem__(self, index: int) -> Any:
        if index == self.count - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(index)


class Missing(OneEach):
    def __getitem__(self, index: int) -> Any:
        with open(f"{self.folder}/is not there", "rb") as file:
            return file.read()


class Lines(IterableDataset[Any]):
    """Opens its file once, when the first item is asked for; a pool of threads reads the rest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __iter__(self) -> Iterator[Any]:
        from concurrent.futures import ThreadPoolExecutor

        names = [self.folder / f"{index:05d}.bin" for index in range(40)]
        with ThreadPoolExecutor(4) as pool:
            for text in pool.map(Path.read_bytes, names):
                yield len(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for index in range(FILES):
        (tmp_path / f"{index:05d}.bin").write_bytes(bytes(64 + index % 2))
    return tmp_path


def loader(dataset: Any, method: str | None = "fork", **options: Any) -> Any:
    workers = {"num_workers": 2, "multiprocessing_context": method} if method else {}
    return DataLoader(dataset, **{"batch_size": 10, "collate_fn": len, **workers, **options})


def recorded(run: Callable[[], Any]) -> Profile:
    with profile(stacks=False) as p:
        run()
    assert p.profile is not None
    return p.profile


def opens(value: Profile, folder: Path) -> list[FileUse]:
    return [use for use in value.files if use.path.startswith(str(folder))]


@pytest.mark.parametrize("method", ["fork", "spawn", None])
def test_a_thousand_small_files_are_counted_exactly(folder: Path, method: str | None) -> None:
    found = recorded(lambda: list(loader(OneEach(folder), method)))
    uses = opens(found, folder)
    assert len(uses) == len({use.path for use in uses}) == FILES
    assert {(use.phase, use.mode, use.opens) for use in uses} == {("fetch", "r", 1)}
    assert Counter(use.size_bytes for use in uses) == {64: 500, 65: 500}
    assert {use.worker for use in uses} == ({0, 1} if method else {-1})
    assert {use.pid for use in uses} == {fetch.pid for fetch in found.fetches}
    assert len({use.filesystem for use in uses}) == 1
    assert uses[0].filesystem


def test_one_file_opened_for_every_item_is_counted_as_such(folder: Path) -> None:
    found = recorded(lambda: list(loader(OneForAll(folder))))
    assert [use.opens for use in opens(found, folder)] == [500, 500]


def test_opens_belong_to_setup_fetch_step_or_none_of_these(folder: Path) -> None:
    def write(name: str, mode: str = "w") -> None:
        with open(folder / name, mode) as file:
            file.write("x")

    def run() -> None:
        (folder / "00000.bin").read_bytes()
        for number, _ in enumerate(loader(OneEach(folder, 40), None)):
            write("log.txt", "a")
            for _ in loader(OneEach(folder, 40), None):  # a loop inside the loop
                write("inner.txt")
            write(f"checkpoint {number}", "w+")
            aside = threading.Thread(target=write, args=("aside.txt",))
            aside.start()
            aside.join()
        write("result.txt")

    found = Counter[tuple[str, str, str]]()
    for use in opens(recorded(run), folder):
        found[Path(use.path).name, use.phase, use.mode] += use.opens
    assert found["00000.bin", "setup", "r"] == 1
    assert found["00001.bin", "fetch", "r"] == 5
    assert found["log.txt", "step", "w"] == 4
    assert found["inner.txt", "step", "w"] == 16
    assert found["checkpoint 3", "step", "rw"] == 1
    assert found["aside.txt", "other", "w"] == 4
    assert found["result.txt", "other", "w"] == 1


def test_threads_that_help_in_a_fetch_belong_to_it(folder: Path) -> None:
    for method in ("fork", None):
        dataset = Lines(folder)
        found = recorded(lambda: list(loader(dataset, method, batch_size=40)))  # noqa: B023
        uses = opens(found, folder)
        assert sum(use.opens for use in uses) == (80 if method else 40)
        assert {use.phase for use in uses} == {"fetch"}


# torch raises in its handler of a child's death, wherever the process is: also where exceptions
# are ignored.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_killed_worker_loses_no_count(folder: Path) -> None:
    def run() -> None:
        with pytest.raises((RuntimeError, OSError, EOFError)):  # its last batch was being fetched
            list(loader(Killed(folder, 200), batch_size=1, num_workers=1))

    uses = opens(recorded(run), folder)
    assert sum(use.opens for use in uses) == 199


def test_the_users_exception_is_unchanged(folder: Path) -> None:
    caught = []
    for watched in (False, True):
        try:
            if watched:
                recorded(lambda: list(loader(Missing(folder), None)))
            else:
                list(loader(Missing(folder), None))
        except FileNotFoundError as error:
            trace, files = error.__traceback__, []
            while trace is not None:
                files.append(trace.tb_frame.f_code.co_filename)
                trace = trace.tb_next
            caught.append((str(error), error.filename, files[-5:]))
    assert caught[0] == caught[1]


class Path_:
    """A path of the user's own, which notes how often it was asked."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.asked = path, 0

    def __fspath__(self) -> str:
        self.asked += 1
        if self.path is None:
            raise KeyError("no path")
        return str(self.path)


def test_odd_paths_are_harmless(folder: Path) -> None:
    good, bad = Path_(folder / "00000.bin"), Path_(None)
    lone = f"{folder}/\ud800"
    raw = os.fsencode(folder) + b"/\xff\xfe"
    Path(os.fsdecode(raw)).write_bytes(b"12345")

    def run() -> None:
        with open(good):
            pass
        with pytest.raises(KeyError):
            open(bad)  # noqa: SIM115
        with pytest.raises(UnicodeEncodeError):
            open(lone)  # noqa: SIM115
        with pytest.raises(ValueError, match="null"):
            open("a\0b")  # noqa: SIM115
        with open(raw):
            pass
        with open(os.open(good, os.O_RDONLY)):
            pass
        os.chdir(folder)
        with open("00001.bin"), open("./00001.bin"):
            pass

    here = os.getcwd()
    try:
        found = recorded(run)
    finally:
        os.chdir(here)
    assert good.asked == 2
    assert bad.asked == 1
    counts = {use.path: (use.opens, use.size_bytes) for use in opens(found, folder)}
    assert counts[f"{folder}/00000.bin"] == (2, 64)
    assert counts[f"{folder}/00001.bin"] == (2, 65)
    assert counts[f"{folder}/\\udcff\\udcfe"] == (1, 5)
    json.dumps(counts).encode()


def test_only_regular_files_of_the_user_count(folder: Path, tmp_path: Path) -> None:
    (folder / "code.py").write_text("VALUE = 1\n")
    os.mkfifo(folder / "pipe")

    def run() -> None:
        Path("/proc/self/status").read_bytes()
        Path(os.devnull).read_bytes()
        Path(json.__file__).read_bytes()
        os.close(os.open(folder, os.O_RDONLY))
        os.close(os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK))
        sys.path.insert(0, str(folder))
        __import__("code_of_nobody" if (folder / "code_of_nobody.py").exists() else "code")
        sys.path.remove(str(folder))
        sqlite3.connect(folder / "rows.db").close()

    found = recorded(run)
    assert [(Path(use.path).name, use.mode) for use in found.files] == [("rows.db", "rw")]


def test_without_a_profile_the_hook_returns_at_once(folder: Path) -> None:
    recorded(lambda: None)
    assert opened_files._watch is None
    calls = 100_000

    def cost_s(function: Any) -> float:
        start_s = time.thread_time()
        for _ in range(calls):
            function("open", ("path", "r", 0))
        return time.thread_time() - start_s

    def nothing(event: str, args: tuple[Any, ...]) -> None:
        return

    idle_s = min(cost_s(opened_files._audit) for _ in range(5))
    assert idle_s < 4 * min(cost_s(nothing) for _ in range(5))


def test_a_foreign_child_counts_nothing(folder: Path) -> None:
    def run() -> None:
        child = os.fork()
        if child == 0:
            (folder / "00000.bin").read_bytes()
            os._exit(0)
        os.waitpid(child, 0)

    assert opens(recorded(run), folder) == []


def test_many_threads_lose_no_count(tmp_path: Path) -> None:
    counts = OpenCounts(lambda: KeptCounts(str(tmp_path / "opens-1.bin"), worker=3))

    def work() -> None:
        for number in range(3_000):
            counts.note((f"/data/{number % 50}", 1, 0))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {count for _, count in counts.rows()} == {360}
    [(pid, worker, rows)] = read_kept(str(tmp_path))
    assert (pid, worker, dict(rows)) == (os.getpid(), 3, dict(counts.rows()))


def test_where_nothing_is_opened_no_file_is_made(tmp_path: Path) -> None:
    counts = OpenCounts(lambda: KeptCounts(str(tmp_path / "opens-1.bin"), worker=0))
    assert list(tmp_path.iterdir()) == []
    counts.note(("/data/a", 1, 0))
    [(_, _, rows)] = read_kept(str(tmp_path))
    assert rows == [(("/data/a", 1, 0), 1)]
    counts.close()


def test_more_files_than_the_table_holds_count_under_one_name(tmp_path: Path) -> None:
    counts = OpenCounts(lambda: KeptCounts(str(tmp_path / "opens-1.bin"), worker=0))
    for number in range(MAX_PATHS + 300):
        counts.note((f"/data/{number}", 1, 0))
    assert dict(counts.rows())[MORE, 1, 0] == 300
    [(_, _, rows)] = read_kept(str(tmp_path))
    uses, gaps = file_uses([(1, 0, rows)], "")
    assert sum(use.opens for use in uses) == MAX_PATHS + 300
    assert [gap.what for gap in gaps] == ["names of some opened files"]


def test_a_torn_file_gives_what_it_holds(tmp_path: Path) -> None:
    counts = OpenCounts(lambda: KeptCounts(str(tmp_path / "opens-1.bin"), worker=0))
    counts.note(("/data/a", 1, 0))
    counts.note(("/data/b", 1, 0))
    path = tmp_path / "opens-1.bin"
    whole = path.read_bytes()
    for length in (0, 7, 20, 60, 70):
        path.write_bytes(whole[:length])
        assert all(
            key[0] in ("/data/a", "/data/b")
            for _, _, rows in read_kept(str(tmp_path))
            for key, _ in rows
        )


def test_a_worker_that_outlives_the_profile_stops_writing(tmp_path: Path) -> None:
    path = tmp_path / "opens-1.bin"
    counts = OpenCounts(lambda: KeptCounts(str(path), worker=0))
    counts.note(("/data/first", 1, 0))
    path.unlink()
    for number in range(5_000):
        counts.note((f"/data/{number}", 1, 0))
    assert counts._kept is not None
    assert counts._kept._map is None


def test_a_full_disk_loses_counts_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = OpenCounts(lambda: KeptCounts(str(tmp_path / "opens-1.bin"), worker=0))
    counts.note(("/data/0", 1, 0))
    monkeypatch.setattr(os, "pwrite", lambda *_: 0)
    for number in range(1, 5_000):
        counts.note((f"/data/{number}", 1, 0))
    assert len(counts.rows()) == 5_000
    [(_, _, rows)] = read_kept(str(tmp_path))
    assert 100 < len(rows) < 5_000


def test_the_file_system_is_that_of_the_longest_mount_point() -> None:
    mounts = Mounts(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "2 1 0:40 / /data/big\\040disk rw shared:1 - nfs4 server:/x rw\n"
        "3 1 0:41 / /data rw - btrfs /dev/sdb rw\n"
    )
    assert mounts.kind(os.makedev(8, 1), "/x") == "ext4"
    assert mounts.kind(os.makedev(0, 99), "/data/big disk/a") == "nfs4"
    assert mounts.kind(os.makedev(0, 99), "/data/big") == "btrfs"
    assert mounts.kind(os.makedev(0, 99), "/database") == "ext4"
    assert Mounts("").kind(1, "/x") == ""
