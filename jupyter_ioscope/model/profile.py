"""The Profile: one recorded run of a cell, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from jupyter_ioscope.model.block import BlockTrace
from jupyter_ioscope.model.observed import (
    BlockedStacks,
    FileUse,
    GcPause,
    HeldFile,
    ImageSize,
    LineCalls,
    ProcessUse,
    SamplesAgain,
    Transform,
)
from jupyter_ioscope.model.readings import Series, Stacks, ThreadReadings
from jupyter_ioscope.model.records import Batch, Epoch, Fetch, LoaderInfo, WorkerInfo


class Gap(NamedTuple):
    """Something that was not measured, and why."""

    what: str
    reason: str


class Cell(NamedTuple):
    """Source of a notebook cell that appears in the stacks or was profiled."""

    execution_count: int
    source: str


class Generator(NamedTuple):
    """A function of the user's that yields, seen in the stacks: where it begins and ends. `file` is
    as in `readings.Frame`."""

    file: str
    first_line: int
    last_line: int


@dataclass(frozen=True)
class Machine:
    """Where the profile was recorded. `cpus_usable` honours affinity; `cpu_quota` is in cores.

    Of the fields from `cpus_of_parent` on, 0 means unknown or none. `cpus_of_parent` is the
    affinity of the process that started this one; `native_threads` are the settings that say how
    many threads libraries use: environment variables that are set, and what torch was told.
    """

    system: str
    python: str
    ioscope: str
    packages: tuple[tuple[str, str], ...]
    cpus: int
    cpus_usable: int
    cpu_quota: float | None
    memory_bytes: int
    gpus: tuple[str, ...] = ()
    cpus_of_parent: int = 0
    memory_limit_bytes: int = 0  # of the cgroup
    shm_bytes: int = 0  # size of /dev/shm
    open_files_limit: int = 0
    native_threads: tuple[tuple[str, str], ...] = ()
    ranks: int = 1  # of one job that may use the same cores, this process counted


@dataclass(frozen=True)
class Cost:
    """What profiling itself used. CPU seconds over the profiled stretch; `records_s` is an estimate
    from the number of records and the time one takes here, measured at the end."""

    sampler_cpu_s: float = 0.0
    stacks_cpu_s: float = 0.0
    records_s: float = 0.0


@dataclass(frozen=True)
class Profile:
    """One recorded run. Only records and readings: judgements are made from it, never stored in it.

    `tier` says how much could be seen: "full", "no_ptrace" (states but no stacks from outside)
    or "in_process" (records only). `ended_by` names the exception that ended the cell,
    `ended_text` is its message, without the middle where it is long.
    `stopped_early` says that the cell went on after recording stopped (`--seconds`, `--batches`).
    """

    label: str
    created_utc: str
    start_ns: int
    end_ns: int
    pid: int
    consumer_tid: int
    machine: Machine
    tier: str = "full"
    ended_by: str | None = None
    stopped_early: bool = False
    cell: Cell | None = None
    cells: tuple[Cell, ...] = ()
    loaders: tuple[LoaderInfo, ...] = ()
    epochs: tuple[Epoch, ...] = ()
    batches: tuple[Batch, ...] = ()
    fetches: tuple[Fetch, ...] = ()
    workers: tuple[WorkerInfo, ...] = ()
    threads: tuple[ThreadReadings, ...] = ()
    series: Mapping[str, Series] = field(default_factory=lambda: MappingProxyType({}))
    stacks: Stacks | None = None
    blocked: BlockedStacks | None = None
    files: tuple[FileUse, ...] = ()
    held_files: tuple[HeldFile, ...] = ()
    processes: tuple[ProcessUse, ...] = ()
    gc_pauses: tuple[GcPause, ...] = ()
    transforms: tuple[Transform, ...] = ()
    calls: tuple[LineCalls, ...] = ()
    images: tuple[ImageSize, ...] = ()
    samples_again: tuple[SamplesAgain, ...] = ()
    generators: tuple[Generator, ...] = ()
    ended_text: str = ""
    block: BlockTrace | None = None
    cost: Cost = Cost()
    not_measured: tuple[Gap, ...] = ()

    @property
    def wall_ns(self) -> int:
        return self.end_ns - self.start_ns

    @property
    def wall_s(self) -> float:
        return self.wall_ns / 1e9
