"""Which files a program opens through Python while samples are made, in a learning child only."""

from __future__ import annotations

import os
import sys
from typing import Any

_NOT_DATA = (".py", ".pyc", ".so")
_NOWHERE = ("/proc/", "/sys/", "/dev/")


class OpenedFiles:
    """Paths in the order in which they were opened for reading. An audit hook stays for good."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.on = True
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or not self.on:
            return
        path, _, flags = arguments
        if isinstance(path, int) or not isinstance(path, (str, bytes)):
            return
        if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR):
            return
        name = os.path.abspath(os.fsdecode(path))
        if not name.endswith(_NOT_DATA) and not name.startswith(_NOWHERE):
            self.paths.append(name)
