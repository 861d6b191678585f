"""Python's `open` replaced, for reading only, in a trial's child and its workers."""

from __future__ import annotations

import builtins
import functools
import io
import os
from collections.abc import Callable
from typing import Any

# (absolute path, mode, buffering) -> an open binary file, or None: as ever
Opener = Callable[[str, str, int], Any]


_READING = frozenset(("r", "rb", "br", "rt", "tr"))


def install_open(opener: Opener) -> None:
    """`open(path, "r..." )` asks `opener` first. Text files are decoded from what it gives, as
    `open` does. Nothing else is asked: files that are written, descriptors, special openers."""
    original: Any = builtins.open

    @functools.wraps(original)
    def opened(
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: Any = None,
        errors: Any = None,
        newline: Any = None,
        *rest: Any,
        **named: Any,
    ) -> Any:
        reads = mode in _READING and not rest and not named and not isinstance(file, int)
        path = absolute(file) if reads else None
        found = opener(path, mode, buffering) if path is not None else None
        if found is None:
            return original(file, mode, buffering, encoding, errors, newline, *rest, **named)
        if "b" in mode:
            return found
        text: Any = io.TextIOWrapper(found, encoding, errors, newline)
        text.mode = mode
        return text

    swapped: Any = opened
    builtins.open = io.open = swapped  # pathlib looks `io.open` up at each call


def absolute(file: Any) -> str | None:
    """The absolute path that `file` names, or None."""
    if type(file) is str and file[:1] == "/" and "/." not in file and "//" not in file:
        return file  # as most programs write them; abspath takes as long as opening does
    try:
        return os.path.abspath(os.fsdecode(os.fspath(file)))
    except (TypeError, ValueError):
        return None
