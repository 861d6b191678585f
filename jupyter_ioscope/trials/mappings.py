"""Mappings through which this process writes into files, and others in their place.

A copy of a process has the same files mapped, at the same addresses, and objects that point there.
mmap(2) with MAP_FIXED puts another file, or private pages, at such an address.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
from typing import NamedTuple

_MAP_FIXED = 0x10  # Linux, every architecture that Python runs on but Alpha and PA-RISC
_PROTECTION = mmap.PROT_READ | mmap.PROT_WRITE


class Mapping(NamedTuple):
    """Bytes `start` to `end` of the address space are those of a file from `offset` on. The path
    ends with " (deleted)" where the file has no name any more."""

    start: int
    end: int
    offset: int
    inode: int
    path: str


def written() -> list[Mapping]:
    """Mappings of files that can be written and are shared; empty where there is no /proc. Left
    out are files that are mapped as code, too: what is written there is to be run."""
    found, code = [], set()
    with contextlib.suppress(OSError), open("/proc/self/maps", errors="surrogateescape") as lines:
        for line in lines:
            fields = line.rstrip("\n").split(maxsplit=5)
            if len(fields) < 6:
                continue  # without a file
            rights, offset, inode, path = fields[1], int(fields[2], 16), int(fields[4]), fields[5]
            if "x" in rights:
                code.add((path, inode))
            elif rights.startswith("rw") and rights.endswith("s"):
                start, end = (int(word, 16) for word in fields[0].split("-"))
                found.append(Mapping(start, end, offset, inode, path))
    return [mapping for mapping in found if (mapping.path, mapping.inode) not in code]


def replace(mapping: Mapping, path: str) -> None:
    """Map the file at `path` there instead, still shared with processes forked from this one.

    Raises:
        OSError: it cannot be mapped; what was there stays.
    """
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        _map(mapping, mmap.MAP_SHARED, fd)
    finally:
        os.close(fd)


def make_private(mapping: Mapping, fd: int) -> None:
    """Keep the file, open at `fd`, but have pages that are written become this process's own.

    Raises:
        OSError: it cannot be mapped; what was there stays.
    """
    _map(mapping, mmap.MAP_PRIVATE, fd)


def make_anonymous(mapping: Mapping) -> None:
    """Put a copy of what is there in its place, shared with processes forked from this one: the
    file itself cannot be opened any more.

    Raises:
        OSError: there is no memory for it; what was there stays.
    """
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        memory.seek(mapping.start)
        content = memory.read(mapping.end - mapping.start)  # ends where the file does
    _map(mapping._replace(offset=0), mmap.MAP_SHARED | mmap.MAP_ANONYMOUS, -1)
    ctypes.memmove(mapping.start, content, len(content))


def _map(mapping: Mapping, kind: int, fd: int) -> None:
    # Not from a library that would have to be loaded: another thread may have held the loader's
    # lock when this process was forked.
    call = ctypes.pythonapi["mmap"]
    call.restype = ctypes.c_void_p
    call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    length = mapping.end - mapping.start
    found = call(mapping.start, length, _PROTECTION, kind | _MAP_FIXED, fd, mapping.offset)
    if found != mapping.start:
        raise OSError(f"{mapping.path} could not be mapped anew")
