"""Replaces a function of a library wherever a program has a name for it, in a trial's child."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

_LIBRARIES = ("site-packages", "dist-packages")


def rebind(owner: Any, name: str, new: Any) -> None:
    """Put `new` in place of `owner.name`, and of every name that modules of the program or of the
    same library have for it (`from json import loads`)."""
    old = getattr(owner, name)
    top = getattr(owner, "__name__", "").partition(".")[0]
    for module in list(sys.modules.values()):
        with contextlib.suppress(Exception):
            if _is_program(module) or module.__name__.partition(".")[0] == top:
                for key, value in list(vars(module).items()):
                    if value is old:
                        setattr(module, key, new)
    setattr(owner, name, new)


def _is_program(module: Any) -> bool:
    path = getattr(module, "__file__", None)
    if path is None:  # a notebook, or a module of the interpreter
        return module.__name__ in ("__main__", "__mp_main__")
    return not any(part in path for part in _LIBRARIES) and not path.startswith(sys.base_prefix)
