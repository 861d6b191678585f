"""Small files copied one after the other into one, and opened out of it in a trial's child."""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from jupyter_ioscope.trials.toggles._open_swap import install_open

_ROW = struct.Struct("<QQ")
# Up to here a copy out of mapped pages takes less than the system call that reads them; a larger
# part is better asked for at once than page by page, where it comes from a disk.
_MAPPED_BYTES = 16 * 1024


class Limits(NamedTuple):
    """Where packing gives up."""

    files: int
    size_bytes: int
    seconds: float


@dataclass(frozen=True)
class PackedFiles:
    """`open(path)` for reading gives the bytes out of the pack, where it holds that path."""

    pack: str

    def install(self) -> None:
        if self.pack not in _installed:
            _installed.add(self.pack)
            install_open(Pack(self.pack).opened)


_installed: set[str] = set()


class Pack:
    """`<pack>.index` has a line a path, `<pack>.rows` where each lies."""

    def __init__(self, path: str) -> None:
        self._path, self._fd = path, -1
        self._map: Any = b""
        with open(f"{path}.index", "rb") as file:
            names = os.fsdecode(file.read()).split("\0")
        with open(f"{path}.rows", "rb") as file:
            self._rows = dict(zip(names, _ROW.iter_unpack(file.read()), strict=True))

    def opened(self, path: str, mode: str, buffering: int) -> Any:
        row = self._rows.get(path)
        if row is None:
            return None
        if self._fd < 0:
            self._open()
        at, length = row
        if length <= _MAPPED_BYTES:
            part = Part(self._map[at : at + length])
        else:
            # At a given place, so that forked processes may share the descriptor.
            part = Part(os.pread(self._fd, length, at))
        part.name = path
        return part

    def _open(self) -> None:
        self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        if os.fstat(self._fd).st_size:  # nothing at all cannot be mapped
            self._map = mmap.mmap(self._fd, 0, prot=mmap.PROT_READ)


class Part(io.BytesIO):
    """A file out of the pack. A descriptor of its file is opened when somebody asks for one, and
    closed with the object: a `close` of its own would cost every sample as much as the read."""

    mode: Any = "rb"
    name: Any = ""
    _own: _Descriptor | None = None

    def fileno(self) -> int:
        at = self.tell()
        if self._own is None:
            self._own = _Descriptor(self.name)
        os.lseek(self._own.fd, at, os.SEEK_SET)
        return self._own.fd

    def writable(self) -> bool:
        return False


class _Descriptor:
    """Of an open file, as long as this lives."""

    def __init__(self, path: str) -> None:
        self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):
            os.close(self.fd)


def make_pack(roots: list[str], suffixes: set[str], target: str, limits: Limits) -> tuple[int, str]:
    """Pack the files below `roots` whose names end in one of `suffixes`.

    Returns how many they are, and why that had to be given up, or "".
    """
    until, written = time.monotonic() + limits.seconds, 0
    rows: list[tuple[bytes, int, int]] = []
    with open(target, "wb") as out:
        for path in _files(roots, suffixes):
            try:
                with open(path, "rb") as file:
                    data = file.read()
            except OSError:
                continue
            rows.append((os.fsencode(path), written, len(data)))
            written += out.write(data)
            if len(rows) > limits.files or written > limits.size_bytes:
                return len(rows), "the folders hold too much to be packed for a trial"
            if time.monotonic() > until:
                return len(rows), f"packing the folders takes longer than {limits.seconds:.0f} s"
    with open(f"{target}.index", "wb") as out:
        out.write(b"\0".join(name for name, _, _ in rows))
    with open(f"{target}.rows", "wb") as out:
        out.write(b"".join(_ROW.pack(at, length) for _, at, length in rows))
    return len(rows), ""


def _files(roots: list[str], suffixes: set[str]) -> Iterator[str]:
    seen: set[str] = set()
    for root in roots:
        for folder, folders, names in os.walk(root):
            folders.sort()
            for name in sorted(names):
                path = os.path.join(folder, name)
                if os.path.splitext(name)[1] in suffixes and path not in seen:
                    seen.add(path)
                    if os.path.isfile(path):
                        yield path
