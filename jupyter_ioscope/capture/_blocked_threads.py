"""What a thread of this very process is blocked in, read without letting go of the GIL.

Reading through `ctypes.PyDLL` keeps the interpreter lock. From the first read until the stack has
been taken no other thread can run Python code, so a thread that is blocked outside of the lock has
exactly this stack: it may at most return from its system call and then stand in line for the lock.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Callable
from typing import NamedTuple

from jupyter_ioscope.capture import syscalls
from jupyter_ioscope.capture.threads import Calls, Key

_SIZE = 2048
_PR_SET_NAME = 15  # linux/prctl.h


class Reader:
    """Reads a small file of `/proc` from its kept-open descriptor. `fds` are those kept open."""

    def __init__(self) -> None:
        pread = _pread()
        buffer = ctypes.create_string_buffer(_SIZE)
        self.fds: set[int] = set()
        self._view = memoryview(buffer).cast("B")
        self._read: Callable[[int], int] = lambda fd: int(pread(fd, buffer, _SIZE, 0))

    def __call__(self, fd: int) -> bytes:
        """The file's beginning; OSError when its thread is gone."""
        got = self._read(fd)
        if got < 0:
            raise ProcessLookupError("the thread has ended")
        return bytes(self._view[:got])

    def close_all(self) -> None:
        """Close what is kept open, without a look at whose it is."""
        while self.fds:
            with contextlib.suppress(OSError):
                os.close(self.fds.pop())


# Made once, and before a worker is forked: making them there takes it 0.6 ms.
@functools.cache
def _library() -> ctypes.PyDLL:
    return ctypes.PyDLL(None)


@functools.cache
def _pread() -> Callable[..., int]:
    pread = _library().pread
    pread.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long)
    pread.restype = ctypes.c_ssize_t
    return pread


@functools.cache
def _prctl() -> Callable[..., int]:
    prctl = _library().prctl
    prctl.argtypes = (ctypes.c_int, ctypes.c_char_p, *[ctypes.c_ulong] * 3)
    return prctl


def name_this_thread(name: str) -> None:
    """Its name for the kernel, which cuts it at 15 characters."""
    with contextlib.suppress(OSError, AttributeError):
        _prctl()(_PR_SET_NAME, name.encode(), 0, 0, 0)


class Exact(NamedTuple):
    """Exact counters of a thread at one instant: time on a core or in line for one, faults."""

    busy_ns: int
    major_faults: int


class OwnThread:
    """One thread of this process.

    Raises OSError when it is gone, or where `/proc` does not show it.
    """

    def __init__(self, tid: int, read: Reader, calls: LockCalls) -> None:
        self.tid = tid
        self._read, self._calls = read, calls
        self._fds: dict[str, int] = {}
        try:
            self._stat = self._open("stat")
            self._call, self._wchan = self._try_open("syscall"), self._try_open("wchan")
            self._times, self._status = self._try_open("schedstat"), self._try_open("status")
        except OSError:
            self.close()
            raise

    def _open(self, name: str) -> int:
        fd = os.open(f"/proc/self/task/{self.tid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        self._fds[name] = fd
        self._read.fds.add(fd)
        os.pread(fd, 1, 0)
        return fd

    def _try_open(self, name: str) -> int | None:
        with contextlib.suppress(OSError):
            return self._open(name)
        return None

    def blocked_in(self) -> tuple[Key, int] | None:
        """(raw key of its state, descriptor whose target the key lacks or -1), or None: it runs."""
        if self._call is None:
            return self._without_call()
        call = self._read(self._call).rstrip(b"\n")
        if call == b"running":
            return None
        number, *arguments = call.split(b" ", 3)
        known = self._calls
        if number in known.futex:
            return (b"S", b" ".join((number, *arguments[:2])), b"", b""), -1
        if number in known.select:
            return (b"S", b" ".join((number, *arguments[:1])), b"", b""), -1
        if number in known.clear:
            return (b"S", number, b"", b""), _descriptor(arguments, number in known.file_locks)
        char = self._char()
        if char == b"R":
            return None
        descriptor = _descriptor(arguments, number in known.descriptor)
        return (char, number, self._where(), b""), descriptor

    def _without_call(self) -> tuple[Key, int] | None:
        char = self._char()
        return None if char == b"R" else ((char, b"", self._where(), b""), -1)

    def _char(self) -> bytes:
        stat = self._read(self._stat)
        return stat[stat.rindex(b")") + 2 :][:1]

    def _where(self) -> bytes:
        return b"" if self._wchan is None else self._read(self._wchan)

    def exact(self) -> Exact:
        """Its counters now. 0 for those that this kernel does not show."""
        stat = self._read(self._stat)
        faults = int(stat[stat.rindex(b")") + 2 :].split(b" ", 10)[9])
        busy_ns = 0
        if self._times is not None:
            run, queue = self._read(self._times).split(b" ")[:2]
            busy_ns = int(run) + int(queue)
        return Exact(busy_ns, faults)

    def turns(self) -> int:
        """How often it let go of its core by itself so far; 0 where unknown."""
        if self._status is None:
            return 0
        text = self._read(self._status)
        at = text.rfind(b"\nvoluntary_ctxt_switches:")
        return int(text[at:].split(None, 2)[1]) if at >= 0 else 0

    def close(self) -> None:
        for fd in self._fds.values():
            self._read.fds.discard(fd)
            with contextlib.suppress(OSError):
                os.close(fd)
        self._fds.clear()


def _descriptor(arguments: list[bytes], wanted: bool) -> int:
    if not wanted or not arguments:
        return -1
    with contextlib.suppress(ValueError):
        return int(arguments[0], 16)
    return -1


def target_of(descriptor: int, whole: bool) -> bytes:
    """What a descriptor of this process points at: the kind of it, or the `whole` path."""
    try:
        link = os.fsencode(os.readlink(f"/proc/self/fd/{descriptor}"))
    except OSError:
        return b""
    if whole or link.startswith(b"/dev/"):
        return link
    # One name for all files: a loader that opens a million of them would need a million keys.
    return b"/" if link.startswith(b"/") else link.split(b"[", 1)[0]


class LockCalls(Calls):
    """Numbers of this machine's system calls, with those that lock a file."""

    def __init__(self, arch: str) -> None:
        super().__init__(arch)
        named = {number for number, name in syscalls.names(arch).items() if name in _FILE_LOCKS}
        self.file_locks = frozenset(str(number).encode() for number in named)


_FILE_LOCKS = ("flock", "fcntl")


@functools.cache
def lock_calls(arch: str) -> LockCalls:
    """`LockCalls`, made once."""
    return LockCalls(arch)
