"""What each process read, wrote, held in memory and kept open.

The helper reads every process of the tree on its beat (`ProcessUses`); a worker also notes its own
counters when its loop begins and ends (`observers/own_counters.py`), exactly and however short it
lives; `uses` joins the two in the profiled process.
"""

from __future__ import annotations

import contextlib
import os
import time
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from jupyter_ioscope.capture import procfs
from jupyter_ioscope.model.observed import ProcessUse

_MOST_READINGS = 64  # of memory: the first ones and the last
_YOUNG_S = 1.0
_MEMORY_YOUNG_S, _MEMORY_S = 0.2, 0.95  # between two readings of a process' memory
_MEMORY_SHARE = 0.0007  # of a core, at most, for readings beside those of the memory probe
_FILES_S = 2.0  # between two counts of open descriptors
_COUNTERS_S = 0.4  # between two readings of the counters, which workers note exactly themselves


class Counters(NamedTuple):
    """What `/proc/<pid>/io` counts since the process began, see proc(5); -1 where not readable."""

    read_calls: int
    read_bytes: int
    device_read_bytes: int
    write_calls: int
    write_bytes: int
    device_write_bytes: int


UNREADABLE = Counters(-1, -1, -1, -1, -1, -1)
_NAMES = (b"syscr", b"rchar", b"read_bytes", b"syscw", b"wchar", b"write_bytes")


def parse_io(raw: bytes) -> Counters:
    """The counters of a text of `/proc/<pid>/io`; `UNREADABLE` where it is not one."""
    fields = dict(line.partition(b": ")[::2] for line in raw.splitlines())
    try:
        return Counters(*(int(fields[name]) for name in _NAMES))
    except (KeyError, ValueError):
        return UNREADABLE


def private_bytes(rollup: bytes) -> int:
    """Private memory by a text of `/proc/<pid>/smaps_rollup`; -1 where it is not one. Segments of
    shared memory that nobody else has mapped yet are left out: they are batches on their way."""
    sizes = {
        line.partition(b":")[0]: int(line.split()[1])
        for line in rollup.splitlines()
        if line.startswith((b"Private_", b"Pss_Shmem:"))
    }
    segments = sizes.pop(b"Pss_Shmem", 0)
    return max(0, sum(sizes.values()) - segments) * 1024 if sizes else -1


class _Process:
    """One process while it is watched. Texts are kept as they are: parsing comes later."""

    def __init__(self, proc: str, pid: int) -> None:
        self._folder = f"{proc}/{pid}"
        self.pid = pid
        self.first_s = time.monotonic()
        self.parent = -1
        self._io: int | None = None
        self.first_io = self.last_io = b""
        self.first_ns = self.last_ns = time.monotonic_ns()
        self.memory_ns, self.memory_bytes = array("q"), array("q")
        self.peak_files = -1
        self.limits = b""
        self.cores: set[int] = set()
        self.ended = False
        with contextlib.suppress(OSError, ValueError, IndexError):
            self.parent = procfs.parse_stat(procfs.read(f"{self._folder}/stat", 1024)).parent
        with contextlib.suppress(OSError):
            self.limits = procfs.read(f"{self._folder}/limits", 4096)
        with contextlib.suppress(OSError):
            self._io = os.open(f"{self._folder}/io", os.O_RDONLY | os.O_CLOEXEC)
            self.first_io = self.last_io = os.pread(self._io, 512, 0)
        self.count_files()

    def count(self) -> None:
        """Read the counters; a process that is gone keeps those it had."""
        try:
            if self._io is not None:
                self.last_io = os.pread(self._io, 512, 0)
            elif not os.path.isdir(self._folder):
                raise ProcessLookupError
        except OSError:
            self.close()
            return
        self.last_ns = time.monotonic_ns()
        self.see_cores()

    def see_cores(self) -> None:
        """A worker may be bound to cores of its own after its start: the newest answer counts."""
        with contextlib.suppress(OSError, AttributeError):  # gone, or no Linux
            self.cores = os.sched_getaffinity(self.pid)

    def wants_memory(self, now_s: float) -> bool:
        """Whether its last reading is old; of a young process soon, for it may not live long."""
        age_s = now_s - (self.memory_ns[-1] / 1e9 if self.memory_ns else 0.0)
        young = now_s - self.first_s < _YOUNG_S
        return not self.ended and age_s > (_MEMORY_YOUNG_S if young else _MEMORY_S)

    def read_memory(self) -> None:
        with contextlib.suppress(OSError):
            self.saw_memory(procfs.read(f"{self._folder}/smaps_rollup", 4096))

    def saw_memory(self, rollup: bytes) -> None:
        size = private_bytes(rollup)
        if size >= 0 and len(self.memory_ns) < _MOST_READINGS:
            self.memory_ns.append(time.monotonic_ns())
            self.memory_bytes.append(size)
        elif size >= 0:
            self.memory_ns[-1], self.memory_bytes[-1] = time.monotonic_ns(), size

    def count_files(self) -> None:
        folder = f"{self._folder}/fd"
        with contextlib.suppress(OSError):
            # Since Linux 6.2 the size is the number of open descriptors; before, it is 0.
            count = os.stat(folder).st_size or len(os.listdir(folder))
            self.peak_files = max(self.peak_files, count)

    def close(self) -> None:
        self.ended = True
        fd, self._io = self._io, None
        if fd is not None:
            with contextlib.suppress(OSError):
                os.close(fd)


class ProcessUses:
    """All processes of a tree, in the helper process."""

    def __init__(self, proc: str, root: int) -> None:
        self._proc, self._root = proc, root
        self._all: dict[int, _Process] = {}
        self._memory_due_s = self._files_due_s = self._counters_due_s = 0.0

    def count(self, pids: Iterable[int], last: bool = False) -> None:
        """Read of live processes the numbers that are due; at the `last` call all counters."""
        now_s = time.monotonic()
        due = last or now_s >= self._counters_due_s
        if due:
            self._counters_due_s = now_s + _COUNTERS_S
        live = []
        for pid in pids:
            process = self._all.get(pid)
            if process is None:
                process = self._all[pid] = _Process(self._proc, pid)
            elif due and not process.ended:
                process.count()
            live.append(process)
        if now_s >= self._memory_due_s:
            # The root is large, and the probe of the tree's memory reads it.
            self._read_memory([p for p in live if p.pid != self._root and p.wants_memory(now_s)])
        if now_s >= self._files_due_s:
            self._files_due_s = now_s + _FILES_S
            for process in live:
                process.count_files()

    def _read_memory(self, processes: Iterable[_Process]) -> None:
        used_s = time.thread_time()
        for process in processes:
            process.read_memory()
        used_s = time.thread_time() - used_s
        self._memory_due_s = time.monotonic() + used_s / _MEMORY_SHARE

    def saw_memory(self, pid: int, rollup: bytes) -> None:
        """Somebody else read the memory of a process: nothing is read twice."""
        process = self._all.get(pid)
        if process is not None:
            process.saw_memory(rollup)

    def packed(self) -> list[dict[str, Any]]:
        """What was seen, ready for JSON; after a last `count`."""
        for process in self._all.values():
            if not process.ended:
                process.count_files()
        root = self._all.get(self._root)
        own = root.cores if root is not None else set()
        return [
            {
                "pid": process.pid,
                "parent": process.parent,
                "first_ns": process.first_ns,
                "last_ns": process.last_ns,
                "first": parse_io(process.first_io),
                "last": parse_io(process.last_io),
                "memory_ns": process.memory_ns.tolist(),
                "memory_bytes": process.memory_bytes.tolist(),
                "peak_open_files": process.peak_files,
                "open_files_limit": _soft_limit(process.limits),
                "bound_to": sorted(process.cores) if own - process.cores else [],
            }
            for process in self._all.values()
        ]

    def close(self) -> None:
        for process in self._all.values():
            process.close()


def _soft_limit(limits: bytes) -> int:
    for line in limits.splitlines():
        if line.startswith(b"Max open files"):
            with contextlib.suppress(ValueError, IndexError):
                return int(line.split()[3])
    return -1


class OwnMemory(NamedTuple):
    """Memory of a worker as it noted it itself; -1 where it did not."""

    anonymous_bytes: int = -1
    private_bytes: int = -1


class OwnCounters(NamedTuple):
    """What a worker noted itself. `last` is None where it was killed or still lives."""

    first_ns: int
    first: Counters
    last_ns: int
    last: Counters | None
    first_memory: OwnMemory = OwnMemory()
    last_memory: OwnMemory = OwnMemory()


def uses(
    packed: Iterable[Mapping[str, Any]],
    own: Mapping[int, OwnCounters],
    workers: Mapping[int, int],
    pid: int,
    proc: str = "/proc",
) -> tuple[ProcessUse, ...]:
    """The growth of every process' counters, the profiled process first.

    Linux adds the counters of a process that was waited for to its parent's; they are taken off
    there again. A worker's counters begin with its loop where it noted them itself: what the
    start of its Python read is not its fetches'.

    Args:
        packed: as `ProcessUses.packed` gives them.
        own: process id -> what that worker noted.
        workers: process id -> worker id.
        pid: the profiled process.
        proc: root of the proc file system.
    """
    seen = {item["pid"]: item for item in packed}
    ends = {number: Counters(*item["last"]) for number, item in seen.items()}
    for number, noted in own.items():
        if noted.last is not None:
            ends[number] = noted.last
    inherited: dict[int, list[Counters]] = {}
    for number, end in ends.items():
        if number != pid and end != UNREADABLE and not os.path.isdir(f"{proc}/{number}"):
            parent = seen[number]["parent"] if number in seen else -1
            # One that was never seen alive is a worker of the profiled process.
            inherited.setdefault(parent if parent >= 0 else pid, []).append(end)
    rows = [
        _use(number, seen.get(number), own.get(number), inherited.get(number, ()), workers)
        for number in {**seen, **own}
    ]
    return tuple(sorted(rows, key=lambda row: (row.pid != pid, row.worker, row.pid)))


def _use(
    pid: int,
    seen: Mapping[str, Any] | None,
    own: OwnCounters | None,
    inherited: Sequence[Counters],
    workers: Mapping[int, int],
) -> ProcessUse:
    first, last = (UNREADABLE, UNREADABLE)
    first_ns = last_ns = 0
    if seen is not None:
        first_ns, last_ns = seen["first_ns"], seen["last_ns"]
        first, last = Counters(*seen["first"]), Counters(*seen["last"])
    if own is not None:
        first_ns, first = own.first_ns, own.first
        if own.last is not None:
            last_ns, last = own.last_ns, own.last
    return ProcessUse(
        pid,
        workers.get(pid, -1),
        first_ns,
        max(first_ns, last_ns),
        *_growth(first, last, inherited),
        *_memory(seen, own),
        seen["peak_open_files"] if seen is not None else -1,
        seen["open_files_limit"] if seen is not None else -1,
        own.first_memory.anonymous_bytes if own is not None else -1,
        own.last_memory.anonymous_bytes if own is not None else -1,
        tuple(seen.get("bound_to", ())) if seen is not None else (),
    )


def _memory(seen: Mapping[str, Any] | None, own: OwnCounters | None) -> tuple[int, int]:
    """Private bytes at both ends; of a worker only since its loop began: before, it imports."""
    noted = own.last_memory.private_bytes if own is not None else -1
    if seen is None or not seen["memory_bytes"]:
        return noted, noted
    since_ns = own.first_ns if own is not None else 0
    readings = zip(seen["memory_ns"], seen["memory_bytes"], strict=True)
    sizes = [size for when, size in readings if when >= since_ns] or seen["memory_bytes"][-1:]
    return sizes[0], noted if noted >= 0 else sizes[-1]


def _growth(first: Counters, last: Counters, inherited: Sequence[Counters]) -> Counters:
    if UNREADABLE in (first, last):
        return UNREADABLE
    grown = [end - start for start, end in zip(first, last, strict=True)]
    for child in inherited:
        for position, value in enumerate(child):
            grown[position] -= value
    return Counters(*(max(0, value) for value in grown))
