"""Which mount a path lies on, from the text of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).

No path is touched: asking a hung network mount about itself would hang the one who asks.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_OCTAL = re.compile(r"\\([0-7]{3})")


class Mount(NamedTuple):
    """One line of mountinfo. `options` are those of the mount, then those of the file system."""

    point: str
    root: str
    device: str  # "major:minor"
    kind: str
    source: str
    options: tuple[str, ...]

    @property
    def read_only(self) -> bool:
        return "ro" in self.options

    def option(self, name: str) -> str | None:
        """The value of `name=value`, "" for a bare `name`, None where it is not set."""
        for text in self.options:
            key, _, value = text.partition("=")
            if key == name:
                return value
        return None


def parse(text: str) -> tuple[Mount, ...]:
    """All mounts, in the kernel's order; lines that are not of the documented form are left out."""
    found = []
    for line in text.split("\n"):  # only that is escaped in a mount's name, no other line end
        left, separator, right = line.partition(" - ")
        fields, rest = left.split(" "), right.split(" ")
        if not separator or len(fields) < 6 or len(rest) < 2 or not rest[0]:
            continue
        options = [*fields[5].split(","), *(rest[2].split(",") if len(rest) > 2 else [])]
        found.append(
            Mount(
                point=unescaped(fields[4]),
                root=unescaped(fields[3]),
                device=fields[2],
                kind=rest[0],
                source=unescaped(rest[1]),
                options=tuple(dict.fromkeys(filter(None, options))),
            )
        )
    return tuple(found)


def of_path(path: str, mounts: tuple[Mount, ...]) -> Mount | None:
    """The mount that an absolute path without symbolic links lies on.

    Of two mounts on one point the later one covers the earlier.
    """
    above = [mount for mount in mounts if _below(path, mount.point)]
    return max(reversed(above), key=lambda mount: len(mount.point), default=None)


def unescaped(text: str) -> str:
    """Blanks, tabs, line feeds and backslashes stand as octal numbers in the kernel's lists."""
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), text)


def _below(path: str, point: str) -> bool:
    return path == point or path.startswith(point.rstrip("/") + "/")
