"""What container, control groups and ulimits allow this process, and what that does to a loader."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.storage import Limit, Limits
from jupyter_ioscope.storage import limits_advice, surroundings
from jupyter_ioscope.storage.cgroups import Groups
from jupyter_ioscope.storage.loader_needs import needs
from jupyter_ioscope.storage.snippets import Ask, snippets
from jupyter_ioscope.units import bytes_text, percent, seconds, significant

# A loader with W workers keeps descriptors for W x prefetch batches of tensors, with the sharing
# strategy "file_descriptor" of torch, beside its own files; 1,024 is the usual soft limit.
FEW_FILES = 4096
# Docker gives /dev/shm 64 MB unless told otherwise (docker run --shm-size).
SMALL_SHM_BYTES = 512 << 20
_FEW_PIDS = 512
_NEARLY = 0.85  # of a memory limit in use
_THROTTLED = 0.05  # of the periods


class Machine(NamedTuple):
    """What is asked of the system itself; a test brings its own."""

    groups: Groups
    environment: Mapping[str, str]
    cores: set[int]
    all_cores: int
    shm: tuple[int, int]  # (size, free) of /dev/shm; (-1, -1) where there is none
    ulimits: Mapping[str, int]  # -1: no limit
    memory: tuple[int, int] = (-1, -1)  # (all, available) of the machine; -1 where unknown


def this_machine() -> Machine:
    """The machine that this process runs on."""
    groups = Groups()
    return Machine(
        groups,
        os.environ,
        surroundings.affinity(),
        os.cpu_count() or 1,
        _shm("/dev/shm"),
        _ulimits(),
        surroundings.memory(groups),
    )


def limits(
    profile: Profile | None = None, machine: Machine | None = None, ranks: int = 1
) -> Limits:
    """Read all limits. A profile adds what its loop, workers and batches took to the advice; so
    many `ranks` of one job share the cores."""
    here = machine or this_machine()
    place, evidence = surroundings.place(here.groups, here.environment)
    rows = tuple(_rows(here))
    cores, source = usable_cores(here)
    wanted = needs(profile)
    count = limits_advice.workers(cores, ranks, wanted)
    if wanted.worker_bytes > 0:
        left = limits_advice.left_bytes(here)
        count = count if left is None else max(1, min(count, int(left // wanted.worker_bytes)))
    limit = next((row for row in rows if row.name == "memory"), None)
    asked = Ask(cores, source, count, wanted, limit, tuple(_few(rows)))
    return Limits(
        place=place,
        evidence=evidence,
        cores=cores,
        workers=count,
        limits=rows,
        advice=tuple(limits_advice.advice(rows, asked, here, ranks)),
        snippets=snippets(place, asked),
        not_known=tuple(_not_known(here)),
    )


def usable_cores(here: Machine) -> tuple[float, str]:
    """(affinity, cut to the CPU quota and to what Slurm gives a task; which of them it is)."""
    known = [(float(len(here.cores)), "affinity")]
    if quota := here.groups.cpu_quota():
        known.append((quota[0], "CPU quota"))
    if slurm := surroundings.slurm_cores(here.environment):
        known.append((float(slurm), "Slurm's cores a task"))
    return min(known, key=lambda row: row[0])


def _few(rows: tuple[Limit, ...]) -> Iterator[tuple[str, int]]:
    """Limits that are tight here, with the number from which on they are not."""
    enough = {"open files": FEW_FILES, "processes and threads": _FEW_PIDS}
    return ((row.name, enough[row.name]) for row in rows
            if row.name in enough and row.state == "tight")  # fmt: skip


def _rows(here: Machine) -> Iterator[Limit]:
    yield from _cpu(here)
    yield from _memory(here)
    yield from _io(here.groups)
    yield from _shm_rows(here)
    yield from _counts(here)
    yield from _io_uring(here.groups)


def _cpu(here: Machine) -> Iterator[Limit]:
    count, total = len(here.cores), here.all_cores
    less = count < total
    yield Limit(
        "affinity", count, f"{count} of {total} cores", "sched_getaffinity(2)",
        "tight" if less else "ok",
        "os.cpu_count() says more than may be used: workers crowd on these cores" if less
        else "all cores may be used",
    )  # fmt: skip
    slurm = surroundings.slurm_cores(here.environment)
    if slurm:
        text = "workers beyond these cores wait for each other"
        yield Limit(
            "Slurm's cores a task", slurm, f"{slurm} cores", "SLURM_CPUS_PER_TASK", "tight", text
        )
    quota = here.groups.cpu_quota()
    if quota is not None:
        cores, source = quota
        yield Limit(
            "CPU quota", cores, f"{significant(cores)} cores", source, "tight",
            "when all workers together have used it up in a period (100 ms by default), they stop "
            "until the next one",
        )  # fmt: skip
    throttled = here.groups.throttling()
    if throttled is not None:
        share, lost_s, source = throttled
        state = "hit" if share > _THROTTLED else "ok"
        text = f"{percent(share)} of the periods, {seconds(lost_s)} in all"
        yield Limit(
            "throttled by the quota", share, text, source, state,
            "threads stood still although cores were free" if state == "hit"
            else "the quota hardly held anything back so far",
        )  # fmt: skip
    nodes = surroundings.numa_nodes(here.groups, here.cores)
    if len(nodes) > 1:
        text = ", ".join(f"{own} cores on {name}" for name, own in nodes)
        yield Limit(
            "NUMA nodes", len(nodes), text, "/sys/devices/system/node", "tight",
            "batches made on one node are read over the link from another",
        )  # fmt: skip


def _memory(here: Machine) -> Iterator[Limit]:
    groups = here.groups
    size, available = here.memory
    if size > 0 and available >= 0:
        yield Limit(
            "memory of the machine", size, f"{bytes_text(size)}, {bytes_text(available)} available",
            "/proc/meminfo", "tight" if available < size * (1 - _NEARLY) else "ok",
            "what all programs share, the page cache of the files included",
        )  # fmt: skip
    slurm = surroundings.slurm_memory(here.environment)
    if slurm is not None:
        yield Limit(
            "memory of the Slurm job", slurm[0], bytes_text(slurm[0]), slurm[1], "ok",
            "Slurm may end a job that takes more on a machine, all its workers together",
        )  # fmt: skip
    if (found := groups.memory()) is not None:
        size = found.limit_bytes
        held, cached = (part / max(1, size) for part in (found.held_bytes, found.cached_bytes))
        yield Limit(
            "memory", size,
            f"{bytes_text(size)}, {percent(held)} held, {percent(cached)} cached files",
            found.source, "tight" if held > _NEARLY else "ok",
            "what programs hold (workers, queued batches) and cached files both count; beyond it "
            "the kernel drops cached files, then kills a process",
        )  # fmt: skip
    slows = groups.smallest("memory", "memory.high", "")
    if slows is not None:
        yield Limit(
            "memory, soft", slows[0], bytes_text(slows[0]), slows[1], "tight",
            "beyond it every allocation is slowed down",
        )  # fmt: skip
    kills = groups.memory_kills()
    if kills > 0:
        yield Limit(
            "killed for memory", kills, f"{kills:,} processes", "oom_kill of the control group",
            "hit", "a DataLoader then says that a worker was killed by signal: Killed",
        )  # fmt: skip


def _io(groups: Groups) -> Iterator[Limit]:
    for row in groups.io_limits():
        many = bytes_text(row.per_s) if row.what.endswith("bytes") else f"{row.per_s:,} requests"
        yield Limit(
            f"{row.what} of device {row.device}", row.per_s, f"{many}/s", row.source, "tight",
            "more workers cannot read faster than this",
        )  # fmt: skip
    weight = groups.io_weight()
    if weight is not None and weight[0] < 100:
        yield Limit(
            "I/O weight", weight[0], f"{weight[0]} (the default is 100)", weight[1], "tight",
            "when others read from the same device too, they are served first",
        )  # fmt: skip


def _shm_rows(here: Machine) -> Iterator[Limit]:
    size, free = here.shm
    if size < 0:
        return
    tight = size < SMALL_SHM_BYTES or free < size * (1 - _NEARLY)
    yield Limit(
        "/dev/shm", size, f"{bytes_text(size)}, {bytes_text(free)} free", "/dev/shm",
        "tight" if tight else "ok",
        "workers pass every batch through it: workers × prefetch_factor batches must fit, or a "
        "worker dies with a bus error",
    )  # fmt: skip


def _counts(here: Machine) -> Iterator[Limit]:
    files = here.ulimits.get("nofile", -1)
    if files >= 0:
        yield Limit(
            "open files", files, f"{files:,}", "ulimit -n (soft)",
            "tight" if files < FEW_FILES else "ok",
            "tensors that wait in the queue hold a descriptor each, as do open shards",
        )  # fmt: skip
    for name, what, source in (
        ("nproc", "processes of this user", "ulimit -u (soft)"),
        ("memlock", "locked memory", "ulimit -l (soft)"),
        ("as", "address space", "ulimit -v (soft)"),
        ("fsize", "file size", "ulimit -f (soft)"),
    ):
        value = here.ulimits.get(name, -1)
        if value >= 0:
            text = f"{value:,}" if name == "nproc" else bytes_text(value)
            yield Limit(what, value, text, source, _tight(name, value), _EFFECTS[name])
    pids = here.groups.smallest("pids", "pids.max", "pids.max")
    if pids is not None:
        state = "tight" if pids[0] < _FEW_PIDS else "ok"
        yield Limit(
            "processes and threads", pids[0], f"{pids[0]:,}", pids[1], state,
            "every worker brings the threads of its libraries (OpenMP, OpenCV, Arrow) along",
        )  # fmt: skip


_EFFECTS = {
    "nproc": "starting a worker, or a thread of one, fails beyond it",
    "memlock": "io_uring buffers and mlock count against it; CUDA's pinned memory does not",
    "as": "memory-mapped data sets count with their whole size and fail to map",
    "fsize": "caches and checkpoints cannot grow beyond it",
}


def _tight(name: str, value: int) -> str:
    if name == "nproc":
        return "tight" if value < _FEW_PIDS else "ok"
    return "tight" if name in ("as", "fsize") else "ok"


def _io_uring(groups: Groups) -> Iterator[Limit]:
    text = groups.text("proc/sys/kernel/io_uring_disabled").strip()
    if text in ("1", "2"):
        who = "all but privileged processes" if text == "1" else "everybody"
        yield Limit(
            "io_uring", float(text), f"off for {who}", "sysctl kernel.io_uring_disabled",
            "ok" if text == "1" else "tight",
            "libraries that read with it fall back to threads",
        )  # fmt: skip


def _not_known(here: Machine) -> Iterator[str]:
    if not here.groups.version:
        yield "control groups: this process's groups cannot be read"
    if here.shm[0] < 0:
        yield "/dev/shm: there is none that can be looked at"


def _shm(path: str) -> tuple[int, int]:
    with contextlib.suppress(OSError, AttributeError):
        found = os.statvfs(path)
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
    return -1, -1


def _ulimits() -> dict[str, int]:
    with contextlib.suppress(ImportError):
        import resource

        found = {}
        for name in ("nofile", "nproc", "memlock", "as", "fsize"):
            number = getattr(resource, f"RLIMIT_{name.upper()}", None)
            if number is not None:
                soft, _ = resource.getrlimit(number)
                found[name] = -1 if soft == resource.RLIM_INFINITY else soft
        return found
    return {}
