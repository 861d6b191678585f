"""Connections that the kernel has open, cut in a copy of it.

Two processes that talk through one connection take each other's answers. So in a copy every socket
that was open before stands for one whose other side is closed: who reads there sees the end, and
clients that can connect anew do so. What Python sends there is dropped, as what it prints is;
libraries written in C get an error. Pipes to other programs are treated alike.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from collections.abc import Callable
from typing import Any

from jupyter_ioscope.trials.open_files import access_of, descriptors, stand_in

_SENDS = ("send", "sendall", "sendto", "sendmsg")
_ADVICE = "connections that were open before it are closed in its runs: open this one in the cell"
_WORDS = ("connection", "socket", "broken pipe")

Note = Callable[[str, str, str], None]


def cut(folder: str, note: Note) -> None:
    """Cut this process's sockets and its pipes to others, for good. `note("sent", where, "")` is
    told at the first use of each socket, and `note("pipe", where, name)` of each file in `folder`
    that takes what is written to a pipe."""
    _Cut(folder, note).all()


def advice(error: BaseException) -> str:
    """What to do about an error of a cell that used what was cut; "" for others."""
    told = f"{type(error).__name__} {error}".lower()
    if type(error).__module__ == "sqlite3" and "thread" in told:
        return (
            "a connection to SQLite cannot be used in a copy of this process: open it in the cell"
        )
    if isinstance(error, ConnectionError) or any(word in told for word in _WORDS):
        return _ADVICE
    return ""


class _Cut:
    def __init__(self, folder: str, note: Note) -> None:
        self.folder, self.note = folder, note
        self.peers: dict[int, str] = {}
        self.dead, other = socket.socketpair()
        other.close()
        self.inode = os.fstat(self.dead.fileno()).st_ino

    def all(self) -> None:
        pipes: dict[int, dict[int, int]] = {}  # inode -> descriptor -> access
        for fd in descriptors():
            with contextlib.suppress(OSError):
                found = os.fstat(fd)  # fails for the descriptor that listed the others
                if stat.S_ISSOCK(found.st_mode) and fd != self.dead.fileno():
                    self.peers[fd] = _peer(fd)
                    os.dup2(self.dead.fileno(), fd, os.get_inheritable(fd))
                elif stat.S_ISFIFO(found.st_mode):
                    pipes.setdefault(found.st_ino, {})[fd] = access_of(fd)
        for ends in pipes.values():
            if len({*ends.values()}) == 1:  # with both ends here it is this program's own
                for fd, access in ends.items():
                    with contextlib.suppress(OSError):
                        self._cut_pipe(fd, access)
        for name in _SENDS:
            setattr(socket.socket, name, self._dropping(getattr(socket.socket, name)))

    def _cut_pipe(self, fd: int, access: int) -> None:
        path = os.devnull
        if access == os.O_WRONLY:
            path = os.path.join(self.folder, name := f"pipe-{fd}")
            stand_in(path, 0)
            self.note("pipe", "a program that it has a pipe to", name)
        new = os.open(path, access | os.O_APPEND | os.O_CLOEXEC)
        os.dup2(new, fd, os.get_inheritable(fd))
        os.close(new)

    def _dropping(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def send(sock: socket.socket, data: Any, *rest: Any) -> Any:
            fd = sock.fileno()
            if fd not in self.peers or os.fstat(fd).st_ino != self.inode:
                return original(sock, data, *rest)
            self.note("sent", self.peers[fd], "")
            if original.__name__ == "sendall":
                return None
            parts = data if original.__name__ == "sendmsg" else (data,)
            return sum(memoryview(part).nbytes for part in parts)

        return send


def _peer(fd: int) -> str:
    """Where a socket is connected to, in words."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(fd)) as sock:
        return address_text(sock.getpeername()) or "another program"
    return "another program"


def address_text(address: Any) -> str:
    """The address of a socket in words; "" for one that has none."""
    if isinstance(address, tuple) and len(address) >= 2:
        return f"{address[0]}:{address[1]}"
    if isinstance(address, (str, bytes)):
        return os.fsdecode(address).replace("\0", "@")  # Linux: without a file
    return ""
