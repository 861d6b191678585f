"""Files and shared memory that the kernel has open or mapped, made a copy's own.

A forked child shares the position of each open file with its parent, and what it writes there is
in the user's file, without any call that names it; so is what it writes into a mapped array or into
shared memory, and a lock there that a run holds when it is ended would stay locked for ever. So
each descriptor gets an open file of its own: for reading, another one of the same file; for writing
only, an empty one of the same size, whose content is dropped; for both, a copy of the file, which
takes the place of mappings, too.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Iterable

from jupyter_ioscope.trials import mappings
from jupyter_ioscope.trials.mappings import Mapping

# Devices, buffers that display servers share, and what has no content of its own.
_ELSEWHERE = ("/dev/", "/memfd:", "/proc/", "/sys/", "/SYSV")
_MEMORY = ("/dev/shm/", "/dev/zero (deleted)")
_KEPT_FLAGS = os.O_ACCMODE | os.O_APPEND | os.O_NONBLOCK
_UNWRITTEN_NS = 0  # time stamp of a stand-in that nobody wrote to
_MOST_COPIED_BYTES = 256 << 20  # a run: copying takes a tenth of a second or two
_SMALL_BYTES = 64 << 10  # locks and counters, of which there may be many
_CHUNK_BYTES = 1 << 20
_SQLITE = b"SQLite format 3\0"

Note = Callable[[str, str, str], None]


def take_apart(folder: str, private: Iterable[str], note: Note) -> None:
    """Give this process open files and mappings of its own. `note(kind, path, what)` is told
    "stand-in" with the name of its file in `folder`; "mapped" with that and the content's sum;
    "private" for a mapping that each process now has for itself; "open" with the stamp of a file
    that stays shared: that one is written to. Files below the folders `private` are left out.

    Raises:
        PermissionError: a file is mapped for writing, and nothing can take its place.
    """
    _Apart(folder, tuple(private), note).take()


def own_positions(private: Iterable[str]) -> None:
    """Give descriptors that can be read open files of their own, at the same place: what a copy
    reads then moves nothing of the process that it was copied from. Files below the folders
    `private` are left out."""
    for fd in descriptors():
        with contextlib.suppress(OSError):
            found = os.fstat(fd)  # fails for the descriptor that listed the others
            path = _path(fd)
            if not _is_foreign(path, tuple(private), found) and access_of(fd) != os.O_WRONLY:
                _replace(fd, f"/proc/self/fd/{fd}")


def descriptors() -> list[int]:
    """This process's open descriptors; none where the system does not list them."""
    with contextlib.suppress(OSError):
        return [int(name) for name in os.listdir("/proc/self/fd")]
    return []


def stand_in(path: str, size_bytes: int, source: str = "") -> None:
    """A file of that size, with the content of `source` if there is one, as if never written."""
    new = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if source:
            with open(source, "rb") as old, open(new, "wb", closefd=False) as file:
                shutil.copyfileobj(old, file, _CHUNK_BYTES)
        os.ftruncate(new, size_bytes)
        os.utime(new, ns=(_UNWRITTEN_NS, _UNWRITTEN_NS))
    finally:
        os.close(new)


def was_written(path: str, content: str = "") -> bool:
    """Whether anything was written to a stand-in. `content`: its sum before, for one that was
    mapped, because not every file system stamps what is written that way."""
    with contextlib.suppress(OSError):
        if os.stat(path).st_mtime_ns != _UNWRITTEN_NS:
            return True
        return bool(content) and content != _content(path)
    return False


def stamp(path: str) -> str:
    """Size and time of change; "" where there is no such file."""
    with contextlib.suppress(OSError):
        found = os.stat(path)
        return f"{found.st_size} {found.st_mtime_ns}"
    return ""


class _Apart:
    def __init__(self, folder: str, private: tuple[str, ...], note: Note) -> None:
        self.folder, self.private, self.note = folder, private, note
        self.left_bytes = _MOST_COPIED_BYTES
        # Path -> (inode, its copy). Of descriptors the inode tells files of one name apart.
        self.copies: dict[str, tuple[int, str]] = {}
        self.databases: set[str] = set()
        self._made = 0

    def take(self) -> None:
        mapped = [m for m in mappings.written() if not _is_elsewhere(m.path, self.private)]
        self.paths = {mapping.path for mapping in mapped}
        fds: list[tuple[int, int, int]] = []
        of_path: dict[str, list[int]] = {}
        for fd in descriptors():
            with contextlib.suppress(OSError):
                found = os.fstat(fd)
                if not _is_foreign(path := _path(fd), self.private, found):
                    # Those for both come first: who only reads is to see what they write. Small
                    # ones come before a large one that takes what may be copied.
                    fds.append((-access_of(fd), found.st_size, fd))
                    of_path.setdefault(path, []).append(fd)
                    if _is_database(fd):
                        self.databases.add(path)
        for mapping in mapped:  # their descriptors tell of files that have no name any more
            self._take_mapping(mapping, _source(mapping, of_path.get(mapping.path, [])))
        for access, _, fd in sorted(fds):
            with contextlib.suppress(OSError):
                self._take(fd, -access)

    def _take(self, fd: int, access: int) -> None:
        path, found = _path(fd), os.fstat(fd)
        if access == os.O_WRONLY:
            name = f"open-{fd}"
            stand_in(os.path.join(self.folder, name), found.st_size)
            self.note("stand-in", path, name)
            _replace(fd, os.path.join(self.folder, name))
            return
        copy = self._copy(path, fd) if access == os.O_RDWR else self._known(path, found.st_ino)
        _replace(fd, copy or f"/proc/self/fd/{fd}")  # may not be opened again: it stays shared
        if access == os.O_RDWR and not copy:
            self.note("open", path, f"{found.st_size} {found.st_mtime_ns}")

    def _take_mapping(self, mapping: Mapping, path: str) -> None:
        if self._of_database(mapping.path):
            return  # its locks lie in it
        try:
            source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._without_file(mapping)
            return
        try:
            if copy := self._copy(mapping.path, source):
                mappings.replace(mapping, copy)
            else:
                mappings.make_private(mapping, source)
                self.note("private", mapping.path, "")
        except OSError as error:
            raise _cannot_replace(mapping) from error
        finally:
            os.close(source)

    def _without_file(self, mapping: Mapping) -> None:
        size_bytes = mapping.end - mapping.start
        if size_bytes > max(self.left_bytes, _SMALL_BYTES):
            raise _cannot_replace(mapping)
        self._copied(size_bytes)
        mappings.make_anonymous(mapping)

    def _copied(self, size_bytes: int) -> None:
        if size_bytes > _SMALL_BYTES:
            self.left_bytes -= size_bytes

    def _known(self, path: str, inode: int) -> str:
        known = self.copies.get(path)
        return known[1] if known is not None and known[0] == inode else ""

    def _copy(self, path: str, fd: int) -> str:
        """A copy of an open file; "" for one that is too large, or that another one belongs to."""
        found = os.fstat(fd)
        if known := self._known(path, found.st_ino):
            return known
        if found.st_size > self.left_bytes or self._of_database(path):
            return ""
        self._made += 1
        name = f"copy-{self._made}"
        copy = os.path.join(self.folder, name)
        try:
            stand_in(copy, found.st_size, f"/proc/self/fd/{fd}")
        except OSError:  # no right to read it, no space
            return ""
        self._copied(found.st_size)
        self.copies[path] = found.st_ino, copy
        if path in self.paths:
            self.note("mapped", path, f"{name} {_content(copy)}")
        else:
            self.note("stand-in", path, name)
        return copy

    def _of_database(self, path: str) -> bool:
        """Whether it is a database of SQLite's or lies beside one: its files are opened by name
        and locked together, so a copy of one of them would harm the user's."""
        return any(path == one or path.startswith(f"{one}-") for one in self.databases)


def _source(mapping: Mapping, fds: list[int]) -> str:
    """Where the mapped file can be opened; `fds` are of files of that name."""
    if len({os.fstat(fd).st_ino for fd in fds}) > 1:  # files without a name any more
        fds = [fd for fd in fds if os.fstat(fd).st_ino == mapping.inode]
    return f"/proc/self/fd/{fds[0]}" if fds else mapping.path


def _cannot_replace(mapping: Mapping) -> PermissionError:
    return PermissionError(
        f"{mapping.path} is mapped for writing, and a run of the cell would change it: close it, "
        "or open it in the cell"
    )


def _path(fd: int) -> str:
    return os.readlink(f"/proc/self/fd/{fd}")


def access_of(fd: int) -> int:
    """How a descriptor is open: `os.O_RDONLY`, `os.O_WRONLY` or `os.O_RDWR`."""
    return _flags(fd) & os.O_ACCMODE


def _flags(fd: int) -> int:
    import fcntl  # not on every system

    return fcntl.fcntl(fd, fcntl.F_GETFL)


def _is_foreign(path: str, private: tuple[str, ...], found: os.stat_result) -> bool:
    return not stat.S_ISREG(found.st_mode) or _is_elsewhere(path, private)


def _is_elsewhere(path: str, private: tuple[str, ...]) -> bool:
    return path.startswith((*_ELSEWHERE, *private)) and not path.startswith(_MEMORY)


def _is_database(fd: int) -> bool:
    with contextlib.suppress(OSError):  # not open for reading
        return os.pread(fd, len(_SQLITE), 0) == _SQLITE
    return False


def _replace(fd: int, path: str) -> None:
    """Have `fd` stand for another open file, at the same position and with the same flags."""
    position = os.lseek(fd, 0, os.SEEK_CUR)
    new = os.open(path, _flags(fd) & _KEPT_FLAGS | os.O_CLOEXEC)
    try:
        os.lseek(new, position, os.SEEK_SET)
        os.dup2(new, fd, os.get_inheritable(fd))
    finally:
        os.close(new)


def _content(path: str) -> str:
    """A sum that tells whether the content changed."""
    import zlib

    total = 0
    with open(path, "rb") as file:
        while data := file.read(_CHUNK_BYTES):
            total = zlib.crc32(data, total)
    return str(total)
