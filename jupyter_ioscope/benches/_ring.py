"""An io_uring of the kernel, driven with plain system calls: for reads at a queue depth.

Layouts and numbers are those of linux/io_uring.h; system call numbers 425 and 426 are the same on
every architecture that Python runs on but alpha. The rings are memory shared with the kernel; a
system call lies between every write here and its reading there, and the other way round.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import struct
import time
from collections.abc import Iterator
from typing import Any

_SETUP, _ENTER = 425, 426
_GETEVENTS = 1  # IORING_ENTER_GETEVENTS
_OP_READ = 22  # IORING_OP_READ, Linux 5.6
_OFF_SQ, _OFF_CQ, _OFF_SQES = 0, 0x8000000, 0x10000000
_PARAMS = 120  # struct io_uring_params
_SQE = struct.Struct("<BBHiQQIIQ24x")  # opcode flags ioprio fd off addr len rw_flags user_data
_CQE = struct.Struct("<QiI")


class Ring:
    """A ring of `depth` entries. Close it when done.

    Raises:
        OSError: the kernel refuses: `why` explains it.
    """

    def __init__(self, depth: int) -> None:
        self._libc: Any = ctypes.CDLL(None, use_errno=True)
        params = ctypes.create_string_buffer(_PARAMS)
        self.fd = self._call(_SETUP, depth, params)
        os.set_inheritable(self.fd, False)
        words = struct.unpack("<30I", params.raw)
        self.entries, completions = words[0], words[1]
        sq, cq = words[10:20], words[20:30]
        self._sq = mmap.mmap(self.fd, sq[6] + 4 * self.entries, offset=_OFF_SQ)
        self._cq = mmap.mmap(self.fd, cq[5] + 16 * completions, offset=_OFF_CQ)
        self._sqes = mmap.mmap(self.fd, 64 * self.entries, offset=_OFF_SQES)
        self._tail_at, self._array_at = sq[1], sq[6]
        self._cq_head_at, self._cq_tail_at, self._cqes_at = cq[0], cq[1], cq[5]
        self._sq_mask = struct.unpack_from("<I", self._sq, sq[2])[0]
        self._cq_mask = struct.unpack_from("<I", self._cq, cq[2])[0]
        self._tail = struct.unpack_from("<I", self._sq, self._tail_at)[0]
        for number in range(self.entries):
            struct.pack_into("<I", self._sq, self._array_at + 4 * number, number)

    def push_read(self, fd: int, address: int, size: int, offset: int, tag: int) -> None:
        """Put a read into the submission ring; `enter` hands it to the kernel."""
        at = 64 * (self._tail & self._sq_mask)
        _SQE.pack_into(self._sqes, at, _OP_READ, 0, 0, fd, offset, address, size, 0, tag)
        self._tail = (self._tail + 1) & 0xFFFFFFFF
        struct.pack_into("<I", self._sq, self._tail_at, self._tail)

    def enter(self, submit: int, wait: int) -> None:
        """Submit what was pushed and wait for `wait` completions.

        Raises:
            OSError: as io_uring_enter(2).
        """
        while True:
            try:
                self._call(_ENTER, self.fd, submit, wait, _GETEVENTS, None, 0)
                return
            except InterruptedError:
                submit = 0

    def completed(self) -> Iterator[tuple[int, int]]:
        """(tag, result) of every completion that is there."""
        head = struct.unpack_from("<I", self._cq, self._cq_head_at)[0]
        tail = struct.unpack_from("<I", self._cq, self._cq_tail_at)[0]
        while head != tail:
            at = self._cqes_at + 16 * (head & self._cq_mask)
            tag, result, _ = _CQE.unpack_from(self._cq, at)
            head = (head + 1) & 0xFFFFFFFF
            struct.pack_into("<I", self._cq, self._cq_head_at, head)
            yield tag, result

    def close(self) -> None:
        for view in (self._sqes, self._cq, self._sq):
            view.close()
        os.close(self.fd)

    def _call(self, number: int, *arguments: Any) -> int:
        found = int(self._libc.syscall(number, *arguments))
        if found < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return found


def timed_reads(
    ring: Ring, fd: int, block: int, offsets: Iterator[int], depth: int, seconds: float
) -> tuple[list[int], float]:
    """Keep `depth` reads under way for `seconds`: (nanoseconds of each, wall seconds).

    Raises:
        OSError: a read failed.
    """
    clock = time.perf_counter_ns
    area = mmap.mmap(-1, depth * block)  # begins at a page, as O_DIRECT wants
    holder = ctypes.c_char.from_buffer(area)
    address = ctypes.addressof(holder)
    begun, took = [0] * depth, []
    try:
        start = clock()
        until = start + int(seconds * 1e9)
        for slot in range(depth):
            begun[slot] = clock()
            ring.push_read(fd, address + slot * block, block, next(offsets), slot)
        new, flying = depth, depth
        while flying:
            ring.enter(new, 1)
            now = clock()
            new = 0
            for slot, result in ring.completed():
                if result < 0:
                    raise OSError(-result, os.strerror(-result))
                took.append(now - begun[slot])
                flying -= 1
                if now < until:
                    begun[slot] = now
                    ring.push_read(fd, address + slot * block, block, next(offsets), slot)
                    new, flying = new + 1, flying + 1
        return took, (clock() - start) / 1e9
    finally:
        # The kernel may still write to the area of reads under way: closing the ring waits.
        ring.close()
        del holder
        area.close()


def why(error: OSError) -> str:
    """Why the kernel gives no ring, and what to do."""
    disabled = _sysctl("io_uring_disabled")
    if error.errno == errno.ENOSYS:
        return (
            "this kernel has no io_uring (Linux 5.1 or newer, CONFIG_IO_URING), or seccomp hides it"
        )
    if error.errno == errno.EPERM and disabled in ("1", "2"):
        return (
            f"kernel.io_uring_disabled is {disabled}: an administrator can allow it with "
            "sysctl kernel.io_uring_disabled=0"
        )
    if error.errno in (errno.EPERM, errno.EACCES):
        return (
            "refused, though the sysctl allows it: a seccomp profile (Docker's default one, for "
            "example) or a security module forbids it"
        )
    if error.errno == errno.ENOMEM:
        return (
            "RLIMIT_MEMLOCK is too small for the rings (ulimit -l), which Linux before 5.12 counts"
        )
    return f"refused: {error.strerror}"


def conditions() -> tuple[tuple[str, str], ...]:
    """What decides whether io_uring may be used here, as names and values."""
    release = os.uname().release
    seccomp = {"0": "no filter", "1": "strict", "2": "a filter is set"}
    mode = _status("Seccomp")
    return (
        ("kernel", release),
        ("kernel.io_uring_disabled", _sysctl("io_uring_disabled") or "not there (before 6.6)"),
        ("kernel.io_uring_group", _sysctl("io_uring_group") or "not there (before 6.6)"),
        ("seccomp of this process", seccomp.get(mode, mode or "not known")),
    )


def _sysctl(name: str) -> str:
    try:
        with open(f"/proc/sys/kernel/{name}") as file:
            return file.read().strip()
    except OSError:
        return ""


def _status(name: str) -> str:
    try:
        with open("/proc/self/status") as file:
            return next((row.split()[1] for row in file if row.startswith(f"{name}:")), "")
    except OSError:
        return ""
