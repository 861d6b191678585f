"""Files of a slow file system opened from a local copy, in a trial's child and its workers."""

from __future__ import annotations

import functools
import io
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials.toggles._open_swap import absolute, install_open


@dataclass(frozen=True)
class LocalCopies:
    """Files below `roots` are copied into `folder` when they are first opened, and opened there
    from then on: by Python's `open`, numpy's memory maps, HDF5, LMDB and SQLite."""

    roots: tuple[str, ...]
    folder: str

    def install(self) -> None:
        if self.folder in _installed:
            return
        _installed.add(self.folder)
        original = open

        def opener(path: str, mode: str, buffering: int) -> Any:
            copy = self.copy_of(path)
            if copy is None:
                return None
            return original(copy, "rb", 0 if buffering == 0 and "b" in mode else -1)

        for library, owner, name in (
            ("h5py", "File", "__init__"),
            ("numpy", "memmap", "__new__"),
        ):
            module = loaded(library)
            if module is not None:
                _first_path(getattr(module, owner), name, self.copy_of)
        install_open(opener)

    def copy_of(self, path: str) -> str | None:
        """The local copy of a file below the roots, made now if need be; None for other files."""
        if not path.startswith(self.roots):
            return None
        copy = os.path.join(self.folder, blake2b(path.encode(errors="replace")).hexdigest()[:32])
        if not os.path.exists(copy):
            part = f"{copy}.{os.getpid()}"
            try:
                # Not by `open`, which is the one that asks here.
                with io.FileIO(path) as source, io.FileIO(part, "w") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
                os.replace(part, copy)
            except OSError:
                return None  # the program gets its error from its own call
        return copy


_installed: set[str] = set()


def _first_path(owner: Any, name: str, copy_of: Callable[[str], str | None]) -> None:
    """Have a method take the copy's path where its first argument is the original's."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def called(target: Any, file: Any, *args: Any, **kwargs: Any) -> Any:
        mode = args[0] if args and owner.__name__ == "File" else kwargs.get("mode", "r")
        path = absolute(file) if mode in ("r", "c") else None
        copy = copy_of(path) if path is not None else None
        return original(target, file if copy is None else copy, *args, **kwargs)

    setattr(owner, name, called)
