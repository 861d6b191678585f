"""What a run of a cell does outside is named, and its files are put back as they were."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from jupyter_ioscope.trials import effects
from jupyter_ioscope.trials.child import Job
from jupyter_ioscope.trials.effects import Effects, NoteEffects
from jupyter_ioscope.trials.isolation import Isolation
from jupyter_ioscope.trials.outcome import Watch

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


def acted(job: Job) -> dict[str, Any]:
    with Isolation() as isolation:
        return isolation.run(job, Watch(silence_s=30))[0]


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
    """Position and content; one that is open for reading, too, is named."""
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
    assert found.files == {str(tmp_path / "log"): "put back", str(tmp_path / "both"): "changed"}


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


def exec_without_files(emit: Any, stop: Any, folder: str, notes: str, path: str) -> dict[str, Any]:
    """A job that starts a program as pexpect does, and so `!program` in a notebook: all descriptors
    are closed first. Then another file may get the journal's number."""
    noted = NoteEffects(notes, (folder,))
    noted.install()
    with open(path, "a") as log:
        os.dup2(log.fileno(), noted._fd)
        (Path(path).parent / "new").write_text("new")
        log.write("mine")
    pid = os.fork()
    if pid == 0:
        os.closerange(3, 256)
        try:
            os.execv("/bin/true", ["true"])
        except BaseException:
            os._exit(1)
    return {
        "status": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]),
        "log": Path(path).read_text(),
    }


def test_programs_start_and_files_are_noted_where_descriptors_were_closed(tmp_path: Path) -> None:
    notes, place = tmp_path / "notes", tmp_path / "place"
    notes.mkdir()
    place.mkdir()
    (place / "log").write_text("log ")
    job = Job("A", exec_without_files, (str(notes), str(place / "log")), needs_child=True)
    assert acted(job) == {"status": 0, "log": "log mine"}
    found = Effects()
    found.read(str(notes))
    assert found.programs == ["/bin/true"]
    assert found.files == {str(place / "log"): "put back", str(place / "new"): "removed"}


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
