"""Open files of one process, kept until it ends or too many are open."""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import Any

MOST = 64  # descriptors are limited, and every one of these may hold buffers


class Handles:
    """Key -> open handle, of this process only: a forked child starts without any, because it
    must not share file positions with its parent."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._kept: OrderedDict[Any, Any] = OrderedDict()

    def get(self, key: Any) -> Any:
        if self._pid != os.getpid():
            self._pid = os.getpid()
            # Left alone, not dropped: closing a parent's handle could write or unlock.
            _inherited.append(self._kept)
            self._kept = OrderedDict()
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: Any, handle: Any) -> None:
        """Call after a `get` that found nothing."""
        self._kept[key] = handle
        while len(self._kept) > MOST:
            self._kept.popitem(last=False)


_inherited: list[Any] = []


def file_key(kind: str, path: Any, *options: Any) -> Any:
    """What tells one file from others and from its own later versions; None when it is no path of
    an existing file."""
    try:
        name = os.fsdecode(os.fspath(path))
        about = os.stat(name)
    except (TypeError, ValueError, OSError):
        return None
    # The file's own number tells relative names apart.
    return kind, name, about.st_dev, about.st_ino, about.st_mtime_ns, about.st_size, repr(options)
