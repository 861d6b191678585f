"""One watched thread: kept-open descriptors, raw texts interned, no parsing on the clock.

Runs in the helper process. For 9 threads at 25 Hz this takes well under 1 % of a core; a thread
that the kernel did not schedule between two counter readings is not read in between at all.
"""

from __future__ import annotations

import contextlib
import os
import time
from array import array

from jupyter_ioscope.capture import syscalls

Key = tuple[bytes, bytes, bytes, bytes]  # state character, syscall, wchan, link

_RUNNING: Key = (b"R", b"running", b"", b"")
_ASLEEP_AFTER = 2  # counter readings without a change


class Keys:
    """Numbers for the texts a sample consists of."""

    def __init__(self) -> None:
        self.numbers: dict[Key, int] = {_RUNNING: 0}

    def number(self, key: Key) -> int:
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = len(self.numbers)
        return found


class Thread:
    """One watched thread: its descriptors, first and last counters, and samples."""

    def __init__(self, proc: str, pid: int, tid: int, calls: Calls, keys: Keys) -> None:
        self.proc, self.pid, self.tid = proc, pid, tid
        self._calls, self._keys = calls, keys
        self._folder = f"{proc}/{pid}/task/{tid}"
        self._fds: dict[str, int] = {}
        self.main = pid == tid
        self.ended = False
        self.unchanged = 0
        self.sample_ns, self.sample_key = array("q"), array("i")
        # Only without the right to see system calls: what tells their reasons apart instead.
        self.sample_faults, self.sample_slices = array("q"), array("q")
        self._pending = array("q")
        try:
            self._stat = self._open("stat")
            self.first_stat = self.last_stat = os.pread(self._stat, 1024, 0)
            if _is_dead(self.first_stat):  # a zombie that was watched while it lived
                raise FileNotFoundError(f"{self._folder} has ended")
            self._counters = self._try_open("schedstat")
            self.exact = self._counters is not None
            self._call = self._try_open("syscall")
            self._wchan: int | None = self._try_open("wchan")
            self.first_counters = self.last_counters = b""
            self.first_ns = self.last_ns = time.monotonic_ns()
            self.count()
            self.first_counters = self.last_counters
        except OSError:
            self.close()
            raise

    @property
    def sees_calls(self) -> bool:
        return self._call is not None

    def _open(self, name: str) -> int:
        fd = os.open(f"{self._folder}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        self._fds[name] = fd
        return fd

    def _try_open(self, name: str) -> int | None:
        with contextlib.suppress(OSError):
            fd = self._open(name)
            os.pread(fd, 1, 0)
            return fd
        return None

    def count(self) -> None:
        """Read the exact counters; marks the thread as ended when it is gone."""
        try:
            counters = os.pread(self._counters, 64, 0) if self._counters is not None else b""
            # Who was not scheduled since has met no fault and has not ended: `stat`, the dearest
            # file, is as it was.
            asleep = self.exact and counters == self.last_counters
            stat = self.last_stat if asleep else os.pread(self._stat, 1024, 0)
        except OSError:
            self.close()
            return
        if asleep:
            self.unchanged += 1
            self._fill()
        else:
            self.last_stat = stat
            counters = counters or stat
            if _is_dead(stat):
                self._end(counters)
                return
            self.unchanged = 0
            self.last_counters = counters
        self.last_ns = time.monotonic_ns()
        del self._pending[:]

    def _end(self, counters: bytes) -> None:
        """It has ended but nobody has reaped it yet: its last counters are still there."""
        self.last_counters = counters
        self.last_ns = time.monotonic_ns()
        self.close()

    def _fill(self) -> None:
        """The thread was not scheduled since the last reading, so it is still in the same state."""
        if self._pending and len(self.sample_key):
            key = self.sample_key[-1]
            for when in self._pending:
                self.sample_ns.append(when)
                self.sample_key.append(key)

    def sample(self) -> None:
        """Record what the thread is doing now."""
        now = time.monotonic_ns()
        if self.unchanged >= _ASLEEP_AFTER and not self.main and self._call is not None:
            self._pending.append(now)
            return
        try:
            number = self._seen_call() if self._call is not None else self._unseen_call()
        except PermissionError:
            self._call = None  # it changed its user: go on without
            return
        except OSError:
            self.close()
            return
        self.sample_ns.append(now)
        self.sample_key.append(number)

    def _seen_call(self) -> int:
        assert self._call is not None
        call = os.pread(self._call, 256, 0)
        if call == b"running\n":
            return 0
        number, *arguments = call.split(b" ", 3)
        if number in self._calls.futex:
            return self._keys.number((b"S", b" ".join((number, *arguments[:2])), b"", b""))
        if number in self._calls.select:
            return self._keys.number((b"S", b" ".join((number, *arguments[:1])), b"", b""))
        if number in self._calls.clear:
            return self._keys.number((b"S", number, b"", b""))
        return self._look_closer(number, arguments)

    def _look_closer(self, number: bytes, arguments: list[bytes]) -> int:
        """Calls whose meaning depends on the kind of sleep, the descriptor, or the place."""
        stat = os.pread(self._stat, 1024, 0)
        if _is_dead(stat):
            self._end(os.pread(self._counters, 64, 0) if self._counters is not None else stat)
            raise ProcessLookupError
        char = stat[stat.rindex(b")") + 2 :][:1]
        if char == b"R":
            return 0
        wchan = link = b""
        if number in self._calls.descriptor:
            link = self._link(arguments[0])
        if not link or link.startswith(b"socket:"):
            wchan = self._where()
        return self._keys.number((char, number, wchan, link.split(b"[", 1)[0]))

    def _unseen_call(self) -> int:
        stat = os.pread(self._stat, 1024, 0)
        end = stat.rindex(b")")
        char = stat[end + 2 : end + 3]
        self.sample_faults.append(int(stat[end + 2 :].split(b" ", 10)[9]))
        slices = os.pread(self._counters, 64, 0) if self._counters is not None else b"0 0 0"
        self.sample_slices.append(int(slices.split()[2]))
        if char == b"R":
            return 0
        return self._keys.number((char, b"", self._where(), b""))

    def _where(self) -> bytes:
        if self._wchan is None:
            return b""
        return os.pread(self._wchan, 64, 0)

    def _link(self, descriptor: bytes) -> bytes:
        with contextlib.suppress(OSError, ValueError):
            path = f"{self.proc}/{self.pid}/fd/{int(descriptor, 16)}"
            return os.fsencode(os.readlink(path))
        return b""

    def thin(self) -> None:
        """Forget every second sample."""
        for name in ("sample_ns", "sample_key", "sample_faults", "sample_slices"):
            setattr(self, name, getattr(self, name)[::2])

    def close(self) -> None:
        self.ended = True
        for fd in self._fds.values():
            with contextlib.suppress(OSError):
                os.close(fd)
        self._fds.clear()


class Calls:
    """Numbers of this machine's system calls, by what else must be read to understand them."""

    def __init__(self, arch: str) -> None:
        self.descriptor = syscalls.numbers("descriptor", arch)
        self.futex = syscalls.numbers("futex", arch)
        self.select = syscalls.numbers("select", arch)
        # Waits that are what they are, whatever the kind of sleep: the most frequent ones, and
        # the reading of `stat`, the dearest, is spared.
        kinds = ("poll", "sleep", "wait_child", "lock", "pipe")
        self.clear = frozenset().union(*(syscalls.numbers(kind, arch) for kind in kinds))


def _is_dead(stat: bytes) -> bool:
    """A zombie or worse: its counters stand still and its states mean nothing."""
    return stat[stat.rindex(b")") + 2 :][:1] in (b"Z", b"X", b"x")
