"""What a process and everything below it uses: its members, CPU, memory; and the whole machine."""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Iterable

from jupyter_ioscope.process_stat import STARTED, stat_fields

_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def descendants(pid: int) -> list[int]:
    """Every living process below `pid`, without itself; empty where there is no /proc."""
    found: list[int] = []
    todo = [pid]
    while todo:
        for child in _children(todo.pop()):
            found.append(child)
            todo.append(child)
    return found


def _children(pid: int) -> list[int]:
    children: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return children
    for tid in threads:
        with contextlib.suppress(OSError, ValueError):
            text = _read(f"/proc/{pid}/task/{tid}/children")
            children += [int(word) for word in text.split()]
    return children


def group_members(pgid: int) -> list[int]:
    """Living processes (zombies left out) of a process group."""
    members = []
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            fields = stat_fields(int(name))
            if len(fields) > 2 and fields[2] == str(pgid) and fields[0] not in "ZX":
                members.append(int(name))
    return members


def started(pid: int) -> str:
    """When a living process began, to tell it from a later one of its number; "" for none."""
    fields = stat_fields(pid)
    return fields[STARTED] if len(fields) > STARTED and fields[0] not in "ZX" else ""


def group(pid: int) -> int:
    """The process group of a process; 0 where there is none."""
    fields = stat_fields(pid)
    return int(fields[2]) if len(fields) > 2 else 0


def runs(pid: int) -> bool:
    """Whether a process is there and neither stopped nor ended."""
    return bool(fields := stat_fields(pid)) and fields[0] not in "TtZX"


def own_tree_cpu_ns() -> int:
    """CPU of this process, of its ended children, and of all living processes below it."""
    own = time.process_time_ns()
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = own + int((ended.ru_utime + ended.ru_stime) * 1e9)
    return total + sum(_cpu_ns(pid) for pid in descendants(os.getpid()))


def _cpu_ns(pid: int) -> int:
    fields = stat_fields(pid)
    waited_ns = sum(int(x) for x in fields[13:15]) * 1_000_000_000 // _TICKS if fields else 0
    try:
        # CPU clock of another process: clock_getcpuclockid(3) is (~pid << 3) | CPUCLOCK_SCHED.
        # Exact to the nanosecond, where utime + stime count ticks of 10 ms.
        return waited_ns + time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        ticks = sum(int(x) for x in fields[11:13]) if fields else 0
        return waited_ns + ticks * 1_000_000_000 // _TICKS


def memory_bytes(pids: Iterable[int]) -> int:
    """Proportional set size of some processes together; 0 where it cannot be read."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError):
            for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
                    break
    return total


def own_memory_bytes(pids: Iterable[int]) -> int:
    """What would be free again if these processes ended: their private pages and their part of
    shared memory. Pages inherited from the parent of a fork are the parent's, and not counted."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError):
            for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
                if line.startswith(("Private_Clean:", "Private_Dirty:", "Pss_Shmem:")):
                    total += int(line.split()[1]) * 1024
    return total


def machine_busy_ns() -> int | None:
    """CPU time all cores have spent busy since boot; None where there is no /proc/stat."""
    try:
        fields = [int(word) for word in _read("/proc/stat").splitlines()[0].split()[1:]]
    except (OSError, ValueError, IndexError):
        return None
    # user, nice, system, irq, softirq, steal; idle and iowait are left out, guest is in user.
    busy = sum(fields[:3]) + sum(fields[5:8])
    return busy * 1_000_000_000 // _TICKS


def _read(path: str) -> str:
    with open(path) as file:
        return file.read()
