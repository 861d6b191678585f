"""Finds the loader that a command line names: `FILE.py:NAME`."""

from __future__ import annotations

import importlib.util
import os
import sys
from types import ModuleType
from typing import Any

from jupyter_ioscope.errors import InputError


def loader_of(target: str, call: bool = True) -> Any:
    """The value of NAME in FILE.py; a function is called without arguments, if `call`.

    The file is imported as a module of its own name, so that workers that are not forked can
    import it, too; what it does under `if __name__ == "__main__"` does not run.

    Raises:
        InputError: there is no such file or name, or it fails.
    """
    path, colon, name = target.rpartition(":")
    if not colon or not path.endswith(".py") or not name.isidentifier():
        raise InputError(f"{target!r} names no loader: write FILE.py:NAME")
    if not os.path.isfile(path):
        raise InputError(f"there is no file {path!r}")
    module = _module(path)
    value = getattr(module, name, None)
    if value is None:
        raise InputError(f"{path!r} has no {name!r} at its top level")
    if call and callable(value) and not hasattr(value, "dataset"):
        try:
            value = value()
        except (Exception, SystemExit) as error:
            raise InputError(f"{name}() of {path!r} failed: {_short(error)}") from error
    return value


def _module(path: str) -> ModuleType:
    full = os.path.abspath(path)
    name = os.path.splitext(os.path.basename(full))[0]
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == full:
        return known
    if known is not None:
        raise InputError(f"{path!r} has the name of a module in use ({name}): rename the file")
    folder = os.path.dirname(full)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(name, full)
    if spec is None or spec.loader is None:
        raise InputError(f"{path!r} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a script ends itself where it is not called as one
        del sys.modules[name]
        raise InputError(f"{path!r} cannot be imported: {_short(error)}") from error
    return module


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]
