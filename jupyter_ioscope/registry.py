"""Finds plug-ins: one file with one constant, in a folder or behind an entry point."""

from __future__ import annotations

import importlib
import logging
import pkgutil
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

log = logging.getLogger("ioscope")


def plugins(package: ModuleType, constant: str, group: str | None = None) -> list[Any]:
    """The plug-ins of `package`, in order of file name, then third parties'.

    A plug-in is a module of the package whose constant (`RULE`, `TOGGLE`, `PROBE`, ...) is
    set; files whose name starts with an underscore are helpers. `group` names the entry-point
    group of third parties, whose entries point at the constant itself. A plug-in that fails to
    import is logged and left out: one broken plug-in never hides the others.
    """
    found: list[Any] = []
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda item: item.name):
        if info.name.startswith("_"):
            continue
        try:
            module = importlib.import_module(f"{package.__name__}.{info.name}")
            found.append(getattr(module, constant))
        except Exception:
            log.warning("plug-in %s.%s left out", package.__name__, info.name, exc_info=True)
    for entry in entry_points(group=group) if group else ():
        try:
            found.append(entry.load())
        except Exception:
            log.warning("plug-in %s of group %s left out", entry.name, group, exc_info=True)
    return found
