"""What a cell does outside its own process while it runs again, and the files put back afterwards.

A forked child has variables of its own, but the user's files are everybody's. So the first change
of each file is noted before it happens, with a copy of what was there, and undone when the run is
over. Python tells of it through audit hooks (PEP 578), `torch.save` by a wrapper; what other
libraries written in C change is not seen.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials import connections, open_files
from jupyter_ioscope.units import bytes_text

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_ELSEWHERE = ("/dev/", "/proc/", "/sys/")
_LARGEST_BYTES = 1 << 30  # of a file that is copied before the cell may change it
_SHOWN = 5
_LISTS = {"network": "network", "program": "programs", "sent": "sent", "private": "private"}
_FOLDER, _LINK, _OTHER = "a folder", "a link to ", "something else"  # instead of a copy's name
# Event -> positions of each path that it changes and of the descriptor of its folder. See "Audit
# events table" of Python's manual.
_CHANGES = {
    "os.remove": ((0, 1),),
    "os.rename": ((0, 2), (1, 3)),
    "os.rmdir": ((0, 1),),
    "os.mkdir": ((0, 2),),
    "os.link": ((1, 3),),
    "os.symlink": ((1, 2),),
    "os.chmod": ((0, 2),),
    "os.utime": ((0, 3),),
}
# The notebook's own record of what was typed, which its kernel writes meanwhile.
_HISTORY = "history.sqlite"
_NETWORK = ("socket.connect", "socket.sendto", "socket.sendmsg")
_PROGRAMS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn")


class NoteEffects:
    """Notes into `folder` what this process and its forked workers do outside. Audit hooks cannot
    be removed, so this is for short-lived processes."""

    def __init__(self, folder: str, private: Iterable[str]) -> None:
        self.folder = folder
        self._private = tuple(os.path.realpath(path) for path in (folder, *private))
        self._seen: set[str] = set()
        # Held while a file is copied: no other thread may change it then. Its owner passes.
        self._lock = threading.RLock()
        self._busy = False
        self._fd = -1
        self._journal: tuple[int, int] | None = None  # which file the descriptor is of

    def install(self) -> None:
        self._begin()
        open_files.take_apart(self.folder, self._private, self._note)
        connections.cut(self.folder, self._told)
        os.register_at_fork(after_in_child=self._free)
        sys.addaudithook(self._hook)
        torch: Any = loaded("torch")
        if torch is not None:
            torch.save = self._before(torch.save)

    def _free(self) -> None:
        """In a worker: another thread may have held the lock when it was forked."""
        self._lock, self._busy = threading.RLock(), False

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            if isinstance(arguments[2], int) and arguments[2] & _WRITES:
                self.changes(arguments[0])
        elif event in _CHANGES:
            for position, folder in _CHANGES[event]:
                self.changes(_entry(arguments[position], arguments[folder]), follow=False)
        elif event == "os.truncate":
            self.changes(arguments[0])
        elif event in _NETWORK:
            where = connections.address_text(arguments[1])
            if where and not where.startswith(self._private):  # its own workers'
                self._once("network", where)
        elif event in _PROGRAMS:
            self._once("program", _text(arguments[0]))

    def changes(self, path: Any, follow: bool = True) -> None:
        """Keep what is at `path`, because it is about to be changed. `follow`: a link there is not
        meant itself.

        Raises:
            PermissionError: it is too large to be kept; the change then does not happen.
        """
        if not isinstance(path, (str, bytes, os.PathLike)):
            return
        text = os.fsdecode(path)
        folder, name = os.path.split(os.path.abspath(text))
        full = os.path.realpath(text) if follow else os.path.join(os.path.realpath(folder), name)
        if full.startswith((*_ELSEWHERE, *self._private)):
            return
        with self._lock:
            if self._busy or full in self._seen:
                return
            self._busy = True
            try:
                self._note("file", full, self._kept(full))
                self._seen.add(full)  # not where it is refused: it may be tried again
            finally:
                self._busy = False

    def _kept(self, path: str) -> str:
        """Name of a copy in the folder; "" where there was nothing; or what else it was."""
        try:
            found = os.lstat(path)
        except OSError:
            return ""
        if stat.S_ISDIR(found.st_mode):
            return _FOLDER
        if stat.S_ISLNK(found.st_mode):
            return _LINK + os.readlink(path)
        if not stat.S_ISREG(found.st_mode):
            return _OTHER
        if found.st_size > _LARGEST_BYTES:
            raise PermissionError(
                f"this run of the cell would change {path}, which is too large "
                f"({bytes_text(found.st_size)}) to be put back afterwards: nothing was changed"
            )
        name = f"{os.getpid()}-{len(self._seen)}"
        shutil.copy2(path, os.path.join(self.folder, name))
        return name

    def _once(self, kind: str, text: str) -> None:
        self._told(kind, text, "")

    def _told(self, kind: str, text: str, copy: str) -> None:
        if (key := f"{kind} {text} {copy}") not in self._seen:
            self._seen.add(key)
            self._note(kind, text, copy)

    def _begin(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(os.path.join(self.folder, "journal"), flags, 0o600)
        self._journal = _identity(self._fd)

    def _note(self, kind: str, text: str, copy: str) -> None:
        # Who starts a program may have closed all descriptors first, and opened others since.
        if _identity(self._fd) != self._journal:
            self._begin()
        os.write(self._fd, (json.dumps([kind, text, copy]) + "\n").encode())

    def _before(self, save: Callable[..., Any]) -> Callable[..., Any]:
        def noted(obj: Any, f: Any, *arguments: Any, **named: Any) -> Any:
            self.changes(f)
            return save(obj, f, *arguments, **named)

        return noted


@dataclass
class Effects:
    """What all runs of a cell did outside: file -> what became of it, and plain lists."""

    files: dict[str, str] = field(default_factory=dict)
    network: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)  # through connections from before; dropped
    private: list[str] = field(default_factory=list)  # mapped files of which there was no copy
    programs: list[str] = field(default_factory=list)
    lines: int = 0  # printed by the newest run
    displays: int = 0
    gpu: bool = False

    def read(self, folder: str) -> None:
        """Take in what one run noted, and put its files back as they were."""
        before: dict[str, str] = {}
        for kind, text, copy in _journal(folder):
            if kind == "file":
                before.setdefault(text, copy)  # a worker may note it again, changed by then
                continue
            if kind in ("stand-in", "mapped", "pipe"):
                name, _, content = copy.partition(" ")
                if open_files.was_written(os.path.join(folder, name), content):
                    if kind == "pipe":
                        _add(self.sent, text)
                    elif not text.startswith(_ELSEWHERE):  # shared memory is no file to a user
                        self.files.setdefault(text, "put back")
            elif kind == "open":
                if os.path.basename(text) != _HISTORY and open_files.stamp(text) not in ("", copy):
                    self.files[text] = "shared"
            else:
                _add(getattr(self, _LISTS[kind]), text)
        # First what is new, from the deepest on; then folders, and what lies in them.
        new = sorted((path for path in before if not before[path]), reverse=True)
        old = sorted((before[path] != _FOLDER, path) for path in before if before[path])
        for path in (*new, *(path for _, path in old)):
            if done := _put_back(path, before[path], folder):
                self.files[path] = done

    def sentences(self) -> list[str]:
        """What to know about them, for the result; empty when there is nothing to say."""
        said = []
        back = [name for name, done in self.files.items() if done in ("put back", "removed")]
        left = [name for name, done in self.files.items() if done == "changed"]
        if back:
            said.append(
                f"Every run of the cell writes files; they were put back as they were, or removed "
                f"where they are new: {_some(back)}."
            )
        if left:
            said.append(f"Changed by the cell's runs and not put back: {_some(left)}.")
        if shared := [name for name, done in self.files.items() if done == "shared"]:
            said.append(
                "Changed while the cell ran, by its runs or by the rest of your program, which has "
                f"them open for reading and writing: {_some(shared)}."
            )
        if self.private:
            said.append(
                "What a run writes into mapped files that are too large to be copied stays in the "
                f"process that writes it, unseen by loop and workers: {_some(self.private)}."
            )
        if self.network:
            said.append(
                f"Every run of the cell connects to {_some(self.network)}: what it sent there was "
                "not undone."
            )
        if self.sent:
            said.append(
                f"Every run of the cell sends to {_some(self.sent)} through connections that were "
                "open before it; they were closed in these runs, and nothing arrived."
            )
        if self.programs:
            said.append(
                f"Every run of the cell starts {_some(self.programs)}: what these programs did was "
                "not undone; those that were still running were ended with the run."
            )
        if self.gpu:
            said.append("Each run used the GPU from a process of its own, beside yours.")
        if self.lines or self.displays:
            said.append(
                f"What the cell prints and shows was dropped ({self.lines} lines and "
                f"{self.displays} outputs a run)."
            )
        return said


def _add(names: list[str], name: str) -> None:
    if name not in names:
        names.append(name)


def _identity(fd: int) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        found = os.fstat(fd)
        return found.st_dev, found.st_ino
    return None


def _journal(folder: str) -> Iterator[list[str]]:
    with contextlib.suppress(OSError), open(os.path.join(folder, "journal")) as file:
        for line in file:
            with contextlib.suppress(ValueError):  # the run ended in the middle of a line
                yield json.loads(line)


def _put_back(path: str, was: str, folder: str) -> str:
    """What became of a file: "put back", "removed", "changed" or "" for nothing."""
    try:
        if not was:
            _remove(path)
            return "removed"
        if was == _FOLDER:
            os.makedirs(path, exist_ok=True)
            return ""
        if was == _OTHER:
            return "changed"
        if was.startswith(_LINK):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            os.symlink(was.removeprefix(_LINK), path)
        else:
            copy = os.path.join(folder, was)
            if os.path.exists(path) and _stamp(path) == _stamp(copy):
                return ""  # opened for writing, and not written to
            shutil.copy2(copy, path)
        return "put back"
    except FileNotFoundError:
        return ""  # it was opened, or meant to be, and is not there
    except OSError:
        return "changed"


def _stamp(path: str) -> tuple[int, int, int]:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns, found.st_mode


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        os.rmdir(path)
    else:
        os.unlink(path)


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def _entry(path: Any, folder_fd: Any) -> Any:
    """A path that may be relative to an open folder (`shutil.rmtree` works that way)."""
    if isinstance(folder_fd, int) and folder_fd >= 0 and isinstance(path, (str, bytes)):
        with contextlib.suppress(OSError):
            return os.path.join(os.readlink(f"/proc/self/fd/{folder_fd}"), os.fsdecode(path))
    return path


def _text(value: Any) -> str:
    text = os.fsdecode(value) if isinstance(value, (str, bytes, os.PathLike)) else repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
