"""All loaders of this package as entries: every class of the files loaders_*.py is one, and so is
every file in the folders of blind/."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import tests.accuracy
from tests.accuracy.entries import BLIND, HEALTHY, Entry, external
from tests.accuracy.loader import Loader

# Labels that no small loader can bring about for certain, and why.
NOT_REBUILT = {
    "pin_memory_misuse": "without an accelerator pinning does nothing",
    "shm_limit": "/dev/shm would have to be made smaller for the whole machine",
}


def own() -> Iterator[Entry]:
    """Entries of this package: each loader at each severity, the severest first."""
    for module, name, kind in found():
        group = "healthy" if kind.causes == (HEALTHY,) else "mixed" if kind.shares else "single"
        for severity in kind.severities:
            yield Entry(
                name=f"{group}/{name}/{severity}"
                if len(kind.severities) > 1
                else f"{group}/{name}",
                group=group,
                source=f"{module}:{name}:{severity}",
                causes=kind.causes,
                severity=severity,
                advice=kind.advice,
                shares=kind.shares,
                step=kind.steps.get(severity, 0.0),
            )


def written_blind() -> Iterator[Entry]:
    """Loaders written by others who did not know the rules, and their repaired variants."""
    return external(Path(__file__).parent / "blind", kind=BLIND)


def found() -> Iterator[tuple[str, str, type[Loader]]]:
    """(module, class name, class) of every loader."""
    for module in pkgutil.iter_modules(tests.accuracy.__path__, "tests.accuracy."):
        if not module.name.rpartition(".")[2].startswith("loaders_"):
            continue
        content = importlib.import_module(module.name)
        for name, kind in inspect.getmembers(content, inspect.isclass):
            if not issubclass(kind, Loader) or kind.__module__ != module.name:
                continue
            if kind.causes and kind.make_loader is not Loader.make_loader:
                yield module.name, name, kind
