"""What a loader plug-in is, and how it waits for its library to be imported."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Protocol

from jupyter_ioscope.capture.patching import Patches
from jupyter_ioscope.capture.recorder import Recorder

log = logging.getLogger("ioscope")


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker process needs to know to record itself. Travels with the worker's start."""

    session_dir: str
    helper_pid: int = 0  # allowed to attach, where Yama asks for that
    inprocess_stacks_hz: float = 0.0  # > 0: nobody may attach, the worker samples itself
    stacks: bool = True  # False under --no-stacks: no observer may take any either


class Loader(Protocol):
    """A loader library. `install` is called once `package` has been imported."""

    name: str
    package: str

    def install(self, recorder: Recorder, patches: Patches, settings: WorkerSettings) -> None: ...


class ImportWatcher(importlib.abc.MetaPathFinder):
    """Calls back once, right after a module was imported for the first time."""

    def __init__(self, module: str, imported: Callable[[], None]) -> None:
        self._module = module
        self._imported = imported
        self._busy = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._module or self._busy:
            return None
        self._busy = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._busy = False
        if spec is None or spec.loader is None:
            return None
        loader, imported = spec.loader, self._imported
        original = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            # The module keeps its loader: a later reload must not find us there.
            with contextlib.suppress(AttributeError):
                del loader.exec_module
            original(module)
            try:
                imported()
            except Exception:
                log.warning("ioscope could not watch %s", fullname, exc_info=True)

        loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def start(self) -> None:
        sys.meta_path.insert(0, self)

    def stop(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
