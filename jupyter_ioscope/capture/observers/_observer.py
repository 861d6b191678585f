"""What an observer is, and how all of them are started and asked for what they saw."""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Protocol

from jupyter_ioscope.capture import observers
from jupyter_ioscope.capture.cells import CellMap
from jupyter_ioscope.capture.recorder import Recorder
from jupyter_ioscope.model.observed import BlockedStacks, FileUse, GcPause, SamplesAgain, Transform
from jupyter_ioscope.model.profile import Gap

log = logging.getLogger("ioscope")


@dataclass(frozen=True)
class Watched:
    """What an observer in the profiled process is told. `stacks` is False under `--no-stacks`."""

    folder: str  # private to the profile; workers leave their files here
    recorder: Recorder
    cells: CellMap
    consumer_tid: int
    stacks: bool
    attach: bool  # whether stacks come from outside: False means that nobody may attach


@dataclass(frozen=True)
class Observed:
    """What one observer, or all together, saw."""

    files: tuple[FileUse, ...] = ()
    gc_pauses: tuple[GcPause, ...] = ()
    transforms: tuple[Transform, ...] = ()
    samples_again: tuple[SamplesAgain, ...] = ()
    blocked: BlockedStacks | None = None
    gaps: tuple[Gap, ...] = ()
    stacks_cpu_s: float = 0.0  # what taking stacks used in all processes


@dataclass(frozen=True)
class InWorker:
    """What an observer in a worker is told. Travels with the worker's start."""

    folder: str
    worker: int
    stacks: bool = True


class Observer(Protocol):
    """`start` begins in the profiled process and gives a function that ends it: that one is called
    once, after the loop, with the process id -> worker id of every worker known.

    `start_in_worker` begins in a worker; what it registers on `stack` runs when the worker ends.
    It must be quick, and leave a file of its own in `folder` that survives a killed worker.
    """

    name: str

    def start(self, watched: Watched) -> Callable[[dict[int, int]], Observed]: ...

    def start_in_worker(self, settings: InWorker, stack: contextlib.ExitStack) -> None: ...


@functools.cache
def all_observers() -> tuple[Observer, ...]:
    """Not by entry points: looking for those takes longer than a worker needs to start."""
    names = sorted(info.name for info in pkgutil.iter_modules(observers.__path__))
    found = []
    for name in names:
        if not name.startswith("_"):
            try:
                found.append(importlib.import_module(f"{observers.__name__}.{name}").OBSERVER)
            except Exception:
                log.warning("ioscope: %s cannot be used", name, exc_info=True)
    return tuple(found)


@dataclass
class Observers:
    """All observers of one profile. A broken one becomes a gap and hides no other."""

    watched: Watched
    _ends: list[tuple[str, Callable[[dict[int, int]], Observed]]] = field(default_factory=list)
    _gaps: list[Gap] = field(default_factory=list)

    def start(self) -> None:
        for observer in all_observers():
            try:
                self._ends.append((observer.name, observer.start(self.watched)))
            except Exception as error:
                self._broke(observer.name, error)

    def stop(self, workers: dict[int, int]) -> Observed:
        """End all of them; harmless when repeated."""
        seen = []
        for name, end in self._ends:
            try:
                seen.append(end(workers))
            except Exception as error:
                self._broke(name, error)
        self._ends.clear()
        return _together([*seen, Observed(gaps=tuple(self._gaps))])

    def _broke(self, name: str, error: Exception) -> None:
        log.warning("ioscope: %s failed", name, exc_info=True)
        self._gaps.append(Gap(name, f"{type(error).__name__}: {error}"))


def start_in_worker(settings: InWorker, stack: contextlib.ExitStack) -> None:
    """Start every observer in this worker; a broken one is passed over."""
    for observer in all_observers():
        with contextlib.suppress(Exception):
            observer.start_in_worker(settings, stack)


def _together(seen: Iterable[Observed]) -> Observed:
    joined: dict[str, object] = {}
    for item in seen:
        for part in fields(Observed):
            value = getattr(item, part.name)
            if isinstance(value, tuple):
                joined[part.name] = (*joined.get(part.name, ()), *value)  # type: ignore[misc]
            elif isinstance(value, float):
                joined[part.name] = value + joined.get(part.name, 0.0)  # type: ignore[operator]
            elif value is not None:
                joined[part.name] = value
    return Observed(**joined)  # type: ignore[arg-type]
