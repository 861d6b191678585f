"""Connections and programs of a run: what was open before carries nothing, what it starts ends."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from jupyter_ioscope.trials import tree
from jupyter_ioscope.trials.child import Job
from jupyter_ioscope.trials.connections import advice
from jupyter_ioscope.trials.effects import Effects, NoteEffects
from tests.isolated import acted

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.skipif(sys.platform != "linux", reason="forked children need Linux"),
]


def talk(
    emit: Any, stop: Any, folder: str, notes: str, sock: Any, pipe: Any, port: int
) -> dict[str, Any]:
    """A job that talks through what was open before it, and through a connection of its own."""
    NoteEffects(notes, (folder,)).install()
    sent = sock.send(b"number"), sock.sendall(b"all"), sock.sendmsg([b"me", b"ssage"])
    with sock.makefile("wb") as file:
        file.write(b"file")
    pipe.write(b"piped")
    pipe.flush()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.sendto(b"datagram", ("127.0.0.1", port))
    with socket.socket(socket.AF_UNIX) as own, pytest.raises(FileNotFoundError):
        own.connect("/nobody/listens")
    with pytest.raises(ConnectionError) as caught:
        os.write(sock.fileno(), b"as a library in C would")
    return {"sent": sent, "heard": sock.recv(1).decode(), "advice": advice(caught.value)}


def test_connections_that_were_open_before_carry_nothing_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()[:2]) as client,
        subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cat,
    ):
        connection, _ = server.accept()
        port = server.getsockname()[1]
        arguments = (str(tmp_path / "notes"), client, cat.stdin, port)
        result = acted(Job("A", talk, arguments, needs_child=True))
        client.sendall(b"mine")
        assert connection.recv(100) == b"mine"
        connection.sendall(b"answer")
        assert client.recv(100) == b"answer"
        assert cat.communicate(b"mine")[0] == b"mine"
        connection.close()
    assert result["sent"] == [6, None, 7]
    assert result["heard"] == ""
    assert "open this one in the cell" in result["advice"]
    found = Effects()
    found.read(str(tmp_path / "notes"))
    assert found.sent == ["a program that it has a pipe to", f"127.0.0.1:{port}"]
    assert found.network == [f"127.0.0.1:{port}", "/nobody/listens"]
    assert "nothing arrived" in " ".join(found.sentences())


def start_programs(emit: Any, stop: Any, folder: str) -> dict[str, Any]:
    """A job that starts one program in a session of its own, and one that nobody is parent of."""
    one = subprocess.Popen(["sleep", "50"], start_new_session=True)
    two = subprocess.run(
        ["setsid", "sh", "-c", "sleep 50 >&- & echo $!"], stdout=subprocess.PIPE, check=True
    )
    return {"pids": [one.pid, int(two.stdout)]}


def test_programs_that_a_run_started_end_with_it() -> None:
    pids = acted(Job("A", start_programs, ()))["pids"]
    assert [tree.started(pid) for pid in pids] == ["", ""]


def test_errors_of_connections_that_a_copy_cannot_use_come_with_advice(tmp_path: Path) -> None:
    database = sqlite3.connect(":memory:")
    caught: list[BaseException] = []

    def use() -> None:
        try:
            database.execute("select 1")
        except sqlite3.ProgrammingError as error:
            caught.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    database.close()
    assert "SQLite cannot be used in a copy" in advice(caught[0])
    assert "open this one in the cell" in advice(OSError("server closed the connection"))
    assert advice(ValueError("invalid literal")) == ""


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
