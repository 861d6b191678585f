"""What a run of a cell does outside is named, and its files are put back as they were."""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import multiprocessing
import os
import pickle
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
import torch

from jupyter_ioscope.trials import effects, open_files
from jupyter_ioscope.trials.child import Job
from jupyter_ioscope.trials.effects import Effects, NoteEffects
from tests.isolated import acted

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.skipif(sys.platform != "linux", reason="forked children need Linux"),
]


def act(emit: Any, stop: Any, folder: str, notes: str, place: str, port: int) -> dict[str, Any]:
    """A job that does everything a cell may do outside of its process."""
    NoteEffects(notes, (folder,)).install()
    here = Path(place)
    with open(here / "log.txt", "a") as log:
        log.write("more")
    (here / "kept.txt").read_text()
    (here / "new.txt").write_text("new")
    (here / "deep" / "er").mkdir(parents=True)
    (here / "deep" / "er" / "file").write_text("x")
    torch.save({"a": 1}, here / "model.pt")
    os.rename(here / "old_name", here / "new_name")
    shutil.rmtree(here / "tree")
    (here / "link").unlink()
    subprocess.run(["true"], check=True)
    with socket.create_connection(("127.0.0.1", port)):
        pass
    return {"seen": sorted(os.listdir(here))}


def state(folder: Path) -> dict[str, Any]:
    return {
        str(path.relative_to(folder)): (
            os.readlink(path)
            if path.is_symlink()
            else path.read_bytes()
            if path.is_file()
            else "folder"
        )
        for path in sorted(folder.rglob("*"))
    }


def test_files_are_put_back_and_the_rest_is_named(tmp_path: Path) -> None:
    place, notes = tmp_path / "place", tmp_path / "notes"
    place.mkdir()
    notes.mkdir()
    for name in ("log.txt", "kept.txt", "model.pt", "old_name"):
        (place / name).write_text(f"this is {name}")
    (place / "tree" / "branch").mkdir(parents=True)
    (place / "tree" / "branch" / "leaf").write_text("green")
    (place / "link").symlink_to("kept.txt")
    before, changed = state(place), os.stat(place / "log.txt").st_mtime_ns
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = acted(Job("A", act, (str(notes), str(place), port), needs_child=True))
    assert {"new.txt", "new_name", "deep"} <= set(result["seen"])
    assert not {"old_name", "tree", "link"} & set(result["seen"])
    found = Effects()
    found.read(str(notes))
    assert state(place) == before
    assert os.stat(place / "log.txt").st_mtime_ns == changed
    said = " ".join(found.sentences())
    assert "not put back" not in said
    assert f"127.0.0.1:{port}" in said
    assert "starts true" in said
    assert found.files[str(place / "new.txt")] == "removed"
    assert found.files[str(place / "model.pt")] == "put back"
    assert str(place / "kept.txt") not in found.files


def go_on(
    emit: Any, stop: Any, folder: str, notes: str, log: Any, lines: Any, both: Any
) -> dict[str, Any]:
    """A job with files that were opened before it."""
    NoteEffects(notes, (folder,)).install()
    log.write("more")
    log.flush()
    both.write(b"more")
    both.flush()
    return {"line": lines.readline().decode(), "at": log.tell()}


def test_files_that_were_open_before_stay_as_they_are(tmp_path: Path) -> None:
    """Position and content, also of one that is open for reading, too."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (tmp_path / "lines").write_bytes(b"1\n2\n3\n")
    (tmp_path / "both").write_text("both")
    with (
        open(tmp_path / "log", "w") as log,
        open(tmp_path / "lines", "rb", buffering=0) as lines,
        open(tmp_path / "both", "rb+") as both,
    ):
        log.write("begin")
        log.flush()
        assert lines.readline() == b"1\n"
        job = Job("A", go_on, (str(notes), log, lines, both), needs_child=True)
        assert acted(job) == {"line": "2\n", "at": 9}
        assert lines.readline() == b"2\n"
        assert both.tell() == 0
        assert log.tell() == 5
        log.write(", end")
    assert (tmp_path / "log").read_text() == "begin, end"
    found = Effects()
    found.read(str(notes))
    assert (tmp_path / "both").read_text() == "both"
    assert found.files == {str(tmp_path / name): "put back" for name in ("log", "both")}


def write_without_a_name(
    emit: Any, stop: Any, folder: str, notes: str, nameless: Any, arrays: Any
) -> dict[str, Any]:
    """A job that writes into arrays of files that it reaches through other objects, and a worker's
    part of them, and into a file without a name."""
    NoteEffects(notes, (folder,)).install()
    nameless.seek(2)
    nameless.write(b"more")
    nameless.flush()
    arrays.held["rows"][0][0] = 7
    arrays.other[0] = arrays.one[0] + 6
    if (pid := os.fork()) == 0:
        arrays.held["rows"][0][1] = 8
        os._exit(0)
    os.waitpid(pid, 0)
    return {"seen": arrays.held["rows"][0][:3].tolist(), "other": int(arrays.other[0])}


def mapped(path: Path, value: int) -> Any:
    numpy.full(2000, value).tofile(path)
    return torch.from_file(str(path), shared=True, size=2000, dtype=torch.int64)


@pytest.mark.parametrize("copied", [True, False])
def test_mapped_files_and_files_without_a_name_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copied: bool
) -> None:
    """Loop and workers see each other's part, but where a file is too large to be copied."""
    if not copied:
        monkeypatch.setattr(open_files, "_MOST_COPIED_BYTES", 1000)
    (tmp_path / "notes").mkdir()
    array = numpy.memmap(tmp_path / "array", dtype="i8", mode="w+", shape=(2000,))
    array[:3] = 1
    # Two without a descriptor, as torch.from_file and others map them.
    one, other = (mapped(tmp_path / name, number) for number, name in enumerate(("one", "other")))
    arrays = SimpleNamespace(held={"rows": [array]}, one=one, other=other)
    locks = [mmap.mmap(-1, 4096) for _ in range(4)]  # what is small does not use up the rest
    with tempfile.TemporaryFile(dir=tmp_path) as nameless:
        nameless.write(b"nameless")
        nameless.flush()
        arguments = (str(tmp_path / "notes"), nameless, arrays)
        result = acted(Job("A", write_without_a_name, arguments, needs_child=True))
        assert result == {"seen": [7, 8, 1] if copied else [7, 1, 1], "other": 6}
        assert os.pread(nameless.fileno(), 20, 0) == b"nameless"
    for lock in locks:
        lock.close()
    assert array[:3].tolist() == [1, 1, 1]
    assert (one[0], other[0]) == (0, 1)
    found = Effects()
    found.read(str(tmp_path / "notes"))
    named = [name for name in found.files if "(deleted)" in name]
    assert [found.files[name] for name in named] == ["put back"]
    if copied:
        assert found.files[str(tmp_path / "array")] == "put back"
    else:
        assert str(tmp_path / "array") in found.private
        said = " ".join(found.sentences())
        assert "stays in the process that writes it, unseen by loop and workers" in said


def write_shared(
    emit: Any, stop: Any, folder: str, notes: str, net: Any, count: Any
) -> dict[str, Any]:
    """A job that changes what lies in shared memory, as a worker does, and ends with a lock."""
    NoteEffects(notes, (folder,)).install()
    with torch.no_grad():
        net.weight.fill_(9)
    count.get_lock().acquire()
    count.get_obj().value += 1
    if (pid := os.fork()) == 0:
        count.get_obj().value += 1
        os._exit(0)
    os.waitpid(pid, 0)
    sent = pickle.loads(ForkingPickler.dumps(net.weight.detach()))  # as to and from a worker
    return {"weight": sent[0, 0].item(), "count": count.get_obj().value}


@pytest.mark.parametrize("copied", [True, False])
def test_shared_memory_stays_as_it_is_and_locks_there_stay_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copied: bool
) -> None:
    if not copied:
        monkeypatch.setattr(open_files, "_MOST_COPIED_BYTES", 8192)  # enough for the lock
    (tmp_path / "notes").mkdir()
    net: Any = torch.nn.Linear(60, 60).share_memory()
    weights = net.weight.detach().clone()
    count = multiprocessing.get_context("fork").Value("i", 5)
    arguments = (str(tmp_path / "notes"), net, count)
    result = acted(Job("A", write_shared, arguments, needs_child=True))
    if copied:
        assert result == {"weight": 9.0, "count": 7}
    assert torch.equal(net.weight, weights)
    assert count.get_obj().value == 5
    assert count.get_lock().acquire(timeout=5)
    found = Effects()
    found.read(str(tmp_path / "notes"))
    assert found.files == {}


def just_install(emit: Any, stop: Any, folder: str, notes: str) -> dict[str, Any]:
    NoteEffects(notes, (folder,)).install()
    return {}


@pytest.mark.parametrize("copied", [True, False])
def test_what_the_program_itself_writes_meanwhile_is_not_blamed_on_the_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copied: bool
) -> None:
    if not copied:
        monkeypatch.setattr(open_files, "_MOST_COPIED_BYTES", 0)
    (tmp_path / "notes").mkdir()
    with open(tmp_path / "both", "wb+", buffering=0) as both:
        both.write(b"before")
        acted(Job("A", just_install, (str(tmp_path / "notes"),), needs_child=True))
        both.write(b"mine")
    found = Effects()
    found.read(str(tmp_path / "notes"))
    said = " ".join(found.sentences())
    assert (said == "") == copied
    assert copied or "by its runs or by the rest of your program, which has them open" in said


def test_databases_are_not_copied_without_what_lies_beside_them(tmp_path: Path) -> None:
    """A run that committed into a copy would leave its journal beside the user's database."""
    (tmp_path / "notes").mkdir()
    with contextlib.closing(sqlite3.connect(tmp_path / "db")) as database:
        database.execute("pragma journal_mode=wal")
        database.execute("create table t (x)")
        acted(Job("A", just_install, (str(tmp_path / "notes"),), needs_child=True))
        lines = (tmp_path / "notes" / "journal").read_text().splitlines()
    rows = [json.loads(line) for line in lines if str(tmp_path / "db") in line]
    assert {kind for kind, _, _ in rows} == {"open"}
    assert rows[0][1] == str(tmp_path / "db")


def with_threads(emit: Any, stop: Any, folder: str, notes: str, place: str) -> dict[str, Any]:
    """A job whose threads change files while another one's is being kept."""
    noted = NoteEffects(notes, (folder,))
    kept, copying = noted._kept, threading.Event()

    def slow(path: str) -> str:
        copying.set()
        time.sleep(0.05)
        return kept(path)

    noted._kept = slow  # type: ignore[method-assign]
    noted.install()
    first = threading.Thread(target=(Path(place) / "one").write_text, args=("new",))
    first.start()
    copying.wait()
    (Path(place) / "two").write_text("new")
    first.join()
    return {}


def test_files_of_several_threads_are_all_put_back(tmp_path: Path) -> None:
    notes, place = tmp_path / "notes", tmp_path / "place"
    notes.mkdir()
    place.mkdir()
    for name in ("one", "two"):
        (place / name).write_text(f"this is {name}")
    before = state(place)
    acted(Job("A", with_threads, (str(notes), str(place)), needs_child=True))
    assert state(place) != before
    Effects().read(str(notes))
    assert state(place) == before


def mark(emit: Any, stop: Any, folder: str, notes: str, path: str) -> dict[str, Any]:
    NoteEffects(notes, (folder,)).install()
    os.chmod(path, 0o444)
    os.utime(path, (1, 1))
    return {}


def test_rights_and_times_of_files_are_put_back(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    marked = tmp_path / "marked"
    marked.write_text("x")
    marked.chmod(0o600)
    before = marked.stat()
    acted(Job("A", mark, (str(tmp_path / "notes"), str(marked)), needs_child=True))
    Effects().read(str(tmp_path / "notes"))
    after = marked.stat()
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)


def write(emit: Any, stop: Any, folder: str, notes: str, path: str) -> dict[str, Any]:
    NoteEffects(notes, (folder,)).install()
    refused = []
    for _ in range(2):
        try:
            Path(path).write_text("shorter")
        except PermissionError as error:
            refused.append(str(error))
    return {"refused": refused}


def test_a_file_too_large_to_be_kept_is_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effects, "_LARGEST_BYTES", 10)
    (tmp_path / "notes").mkdir()
    large = tmp_path / "large"
    large.write_text("more than ten bytes")
    result = acted(Job("A", write, (str(tmp_path / "notes"), str(large)), needs_child=True))
    assert ["too large" in text for text in result["refused"]] == [True, True]
    assert large.read_text() == "more than ten bytes"


def test_a_run_that_does_nothing_outside_has_nothing_to_say(tmp_path: Path) -> None:
    found = Effects()
    found.read(str(tmp_path))
    assert found.sentences() == []


def make_semaphore(emit: Any, stop: Any, folder: str, name: str) -> dict[str, Any]:
    """A job that is ended as multiprocessing has made a semaphore, and not yet unlinked it."""
    call = ctypes.pythonapi["sem_open"]
    call.restype = ctypes.c_void_p
    return {"made": bool(call(name.encode(), os.O_CREAT | os.O_EXCL, 0o600, 1))}


def test_a_semaphore_goes_with_its_maker_though_it_was_mapped_by_another_name() -> None:
    name = f"/ioscope-test-{os.getpid()}"
    assert acted(Job("A", make_semaphore, (name,))) == {"made": True}
    assert not os.path.exists(f"/dev/shm/sem.{name[1:]}")
