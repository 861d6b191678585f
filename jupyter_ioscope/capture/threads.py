"""Watches threads: kept-open descriptors, raw texts interned, nothing parsed while the clock runs.

Runs in the helper process. For 9 threads at 25 Hz this takes well under 1 % of a core; a thread
that the kernel did not schedule between two counter readings is not read in between at all.
"""

from __future__ import annotations

import contextlib
import os
import time
from array import array
from collections.abc import Iterator

from jupyter_ioscope.capture import syscalls

Key = tuple[bytes, bytes, bytes, bytes]  # state character, syscall, wchan, link

_RUNNING: Key = (b"R", b"running", b"", b"")
_MAX_SAMPLES = 2_000_000  # of all threads together: 24 MB
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
            stat = os.pread(self._stat, 1024, 0)
            counters = os.pread(self._counters, 64, 0) if self._counters is not None else stat
        except OSError:
            self.close()
            return
        self.last_stat = stat
        if _is_dead(stat):
            self._end(counters)
            return
        if self.exact and counters == self.last_counters:
            self.unchanged += 1
            self._fill()
        else:
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
        stat = os.pread(self._stat, 1024, 0)
        if _is_dead(stat):
            self._end(os.pread(self._counters, 64, 0) if self._counters is not None else stat)
            raise ProcessLookupError
        char = stat[stat.rindex(b")") + 2 :][:1]
        if char == b"R":
            return 0
        parts = call.split(b" ", 3)
        number = parts[0]
        wchan = link = b""
        if number in self._calls.descriptor:
            link = self._link(parts[1])
            if not link or link.startswith(b"socket:"):
                wchan = self._where()
        elif number not in self._calls.clear:
            wchan = self._where()
        short = number if number not in self._calls.futex else b" ".join(parts[:3])
        return self._keys.number((char, short, wchan, link.split(b"[", 1)[0]))

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
        kinds = ("futex", "poll", "sleep", "wait_child", "lock", "pipe", "file")
        self.clear = frozenset().union(*(syscalls.numbers(kind, arch) for kind in kinds))


def _is_dead(stat: bytes) -> bool:
    """A zombie or worse: its counters stand still and its states mean nothing."""
    return stat[stat.rindex(b")") + 2 :][:1] in (b"Z", b"X", b"x")


class Watch:
    """All threads of a process tree."""

    def __init__(self, proc: str, arch: str) -> None:
        self._proc = proc
        self._calls, self.keys = Calls(arch), Keys()
        self.live: dict[tuple[int, int], Thread] = {}
        self.ended: list[Thread] = []
        self.refused = 0  # threads that could not be opened, though they were there
        self.thinned = 0

    def update(self, found: set[tuple[int, int]]) -> None:
        """Watch the threads newly found. Those that are gone are noticed when read."""
        for pid, tid in found - self.live.keys():
            try:
                self.live[pid, tid] = Thread(self._proc, pid, tid, self._calls, self.keys)
            except FileNotFoundError:
                continue
            except (OSError, ValueError):
                self.refused += 1

    def sample(self) -> None:
        for thread in self.live.values():
            thread.sample()
        self._sweep()

    def count(self) -> None:
        for thread in self.live.values():
            thread.count()
        self._sweep()
        if sum(len(thread.sample_ns) for thread in self.all()) > _MAX_SAMPLES:
            self.thinned += 1
            for thread in self.all():
                thread.thin()

    def _sweep(self) -> None:
        gone = [key for key, thread in self.live.items() if thread.ended]
        for key in gone:
            self.ended.append(self.live.pop(key))

    def pids(self) -> set[int]:
        return {pid for pid, _ in self.live}

    def all(self) -> Iterator[Thread]:
        yield from self.ended
        yield from self.live.values()

    def close(self) -> None:
        for thread in list(self.live.values()):
            thread.close()
        self._sweep()
