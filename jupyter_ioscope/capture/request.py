"""What the parts of capture hand to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jupyter_ioscope.model.block import BlockTrace
from jupyter_ioscope.model.observed import HeldFile, ProcessUse
from jupyter_ioscope.model.profile import Gap
from jupyter_ioscope.model.readings import Series, Stacks, ThreadReadings

FOLDER_PREFIX = "ioscope-"  # of a profile's private folder, by which the helper knows it as ours


@dataclass(frozen=True)
class SamplerRequest:
    """What the helper process shall watch: the process `pid` and all below it."""

    pid: int
    consumer_tid: int
    session_dir: str  # private folder of this profile; in-process stack files of workers lie here
    rate_hz: float = 25.0
    stacks: bool = True
    stack_rate_hz: float = 25.0
    block_trace: bool = False


@dataclass(frozen=True)
class SamplerResult:
    """What the helper saw, roles and worker ids filled in."""

    tier: str  # "full", "no_ptrace", "in_process"
    threads: tuple[ThreadReadings, ...] = ()
    series: Mapping[str, Series] = field(default_factory=dict)
    stacks: Stacks | None = None
    held_files: tuple[HeldFile, ...] = ()
    processes: tuple[ProcessUse, ...] = ()
    gaps: tuple[Gap, ...] = ()
    gpus: tuple[str, ...] = ()
    block: BlockTrace | None = None
    sampler_cpu_s: float = 0.0
    stacks_cpu_s: float = 0.0
