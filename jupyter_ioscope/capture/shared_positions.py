"""Whether processes read one file through one position, because they inherited its descriptor.

A descriptor that a fork copies leads to the same open file as the parent's: every `read` of one
process moves the position for all. kcmp(2) tells such descriptors from those that each process
opened for itself; it needs the right to look into both processes.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys

_KCMP = {"x86_64": 312, "aarch64": 272}  # asm/unistd_64.h; asm-generic/unistd.h
_KCMP_FILE = 0  # linux/kcmp.h
_MOST_ORIGINS = 4
_MOST_POSITIONS = 64  # that many different ones prove as much as more


class Sharing:
    """What is known of one file: which processes share a position, and where it was seen."""

    def __init__(self) -> None:
        self._origins: list[tuple[int, str]] = []
        self._compared: set[int] = set()
        self.pids: set[int] = set()
        self.positions: set[int] = set()

    def look(self, proc: str, pid: int, number: str) -> None:
        """Note a process that holds the file as descriptor `number`. Never raises OSError."""
        if pid not in self._compared:
            self._compared.add(pid)
            self._compare(pid, number)
        if pid in self.pids and len(self.positions) < _MOST_POSITIONS:
            position = read_position(proc, pid, number)
            if position >= 0:
                self.positions.add(position)

    def _compare(self, pid: int, number: str) -> None:
        for other, its in self._origins:
            if same_open_file(other, int(its), pid, int(number)):
                self.pids |= {other, pid}
                return
        if len(self._origins) < _MOST_ORIGINS:
            self._origins.append((pid, number))


def same_open_file(pid: int, number: int, other_pid: int, other_number: int) -> bool:
    """Whether two descriptors lead to one open file; False where that may not be asked."""
    call = _KCMP.get(platform.machine())
    if call is None or not sys.platform.startswith("linux"):
        return False
    asked = (call, pid, other_pid, _KCMP_FILE, number, other_number)
    try:
        return bool(ctypes.CDLL(None).syscall(*map(ctypes.c_long, asked)) == 0)
    except (OSError, AttributeError):
        return False


def read_position(proc: str, pid: int, number: str) -> int:
    """Position of a descriptor that can be read from; -1 for others, and where it is not told."""
    try:
        with open(f"{proc}/{pid}/fdinfo/{number}", encoding="ascii") as file:
            told = dict(line.split(":", 1) for line in file if ":" in line)
        if int(told["flags"], 8) & os.O_ACCMODE == os.O_WRONLY:
            return -1
        return int(told["pos"])
    except (OSError, ValueError, KeyError):
        return -1
