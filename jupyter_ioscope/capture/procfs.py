"""Reading `/proc`: small, with the root given, so that a test can point it elsewhere."""

from __future__ import annotations

import contextlib
import os
import re
from typing import NamedTuple

_PYTHON = re.compile(r"/(python[\d.]*\w*|libpython[\d.]+\w*\.so[\d.]*)( \(deleted\))?$")


class ThreadStat(NamedTuple):
    """What one text of `stat` says. `start_ticks` is clock ticks since boot."""

    name: str
    state: str
    parent: int
    major_faults: int
    start_ticks: int


def read(path: str, size: int = 65536) -> bytes:
    """The first `size` bytes of a file; OSError as `open` raises it."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, size)
    finally:
        os.close(fd)


def read_all(path: str) -> bytes:
    """A whole file of `/proc`, however long."""
    with open(path, "rb", buffering=0) as file:
        return file.read() or b""


def parse_stat(raw: bytes) -> ThreadStat:
    """The fields of `stat` used here; the name may itself hold blanks and parentheses.

    Raises:
        ValueError, IndexError: the text is not a `stat`.
    """
    left, right = raw.index(b"("), raw.rindex(b")")
    fields = raw[right + 2 :].split(b" ", 21)
    name = raw[left + 1 : right].decode("utf-8", "replace")
    return ThreadStat(name, fields[0].decode(), int(fields[1]), int(fields[9]), int(fields[19]))


def threads(proc: str, pid: int) -> list[int]:
    """Thread ids of a process; empty when it is gone."""
    with contextlib.suppress(OSError):
        return [int(name) for name in os.listdir(f"{proc}/{pid}/task") if name.isdigit()]
    return []


def children(proc: str, pid: int, tid: int) -> list[int]:
    """Processes that thread `tid` of `pid` made and that still live; empty when it is gone."""
    with contextlib.suppress(OSError, ValueError):
        return [int(part) for part in read(f"{proc}/{pid}/task/{tid}/children").split()]
    return []


def parents(proc: str) -> dict[int, int]:
    """pid -> parent for the whole machine; for kernels without `children` files."""
    found: dict[int, int] = {}
    with contextlib.suppress(OSError):
        for name in os.listdir(proc):
            if name.isdigit():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    found[int(name)] = parse_stat(read(f"{proc}/{name}/stat", 1024)).parent
    return found


def interpreter_data(proc: str, pid: int) -> tuple[tuple[int, int], ...]:
    """Address ranges of the Python interpreter's writable data; empty where not readable.

    The interpreter lock lies in `_PyRuntime`, a variable of the executable or of libpython. Its
    zero-initialised part has no file name: it is the unnamed mapping right behind the named one.
    """
    try:
        text = read_all(f"{proc}/{pid}/maps").decode("utf-8", "replace")
    except OSError:
        return ()
    return data_ranges(text)


def data_ranges(maps: str) -> tuple[tuple[int, int], ...]:
    """`interpreter_data` from the text of a `maps` file."""
    ranges: list[tuple[int, int]] = []
    end_of_data = -1
    for line in maps.splitlines():
        fields = line.split(None, 5)
        start, end = (int(part, 16) for part in fields[0].split("-"))
        path = fields[5] if len(fields) > 5 else ""
        writable = "w" in fields[1]
        if writable and (_PYTHON.search(path) or (not path and start == end_of_data)):
            ranges.append((start, end))
            end_of_data = end if path else -1
        elif not _PYTHON.search(path):
            end_of_data = -1
    return tuple(ranges)
