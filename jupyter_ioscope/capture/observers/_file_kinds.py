"""What the opened files are, found after the clock has stopped: sizes and file systems."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable

from jupyter_ioscope.capture.observers._open_counts import MODES, MORE, Key
from jupyter_ioscope.model.observed import PHASES, FileUse
from jupyter_ioscope.model.profile import Gap

MAX_LOOKS = 4_000  # files
_LOOKING_S = 0.25  # a dead network mount must not hold the report back for long
MAX_ROWS = 50_000

Counts = Iterable[tuple[Key, int]]


def file_uses(
    tables: Iterable[tuple[int, int, Counts]], mounts: str
) -> tuple[tuple[FileUse, ...], tuple[Gap, ...]]:
    """The counts of all processes with what is known of each file, most opened first.

    Args:
        tables: (pid, worker, counts) of each process.
        mounts: text of `/proc/self/mountinfo`, see proc(5).
    """
    merged: dict[tuple[int, int, Key], int] = {}
    for pid, worker, counts in tables:
        for (path, phase, mode), count in counts:
            key = (pid, worker, (path if path == MORE else os.path.normpath(path), phase, mode))
            merged[key] = merged.get(key, 0) + count
    kinds = _looked_at(dict.fromkeys(key[2][0] for key in merged), Mounts(mounts))
    uses = [
        FileUse(
            path=shown(path),
            pid=pid,
            worker=worker,
            phase=PHASES[phase],
            mode=MODES[mode],
            opens=count,
            size_bytes=kinds[path][0],
            filesystem=kinds[path][1],
        )
        for (pid, worker, (path, phase, mode)), count in merged.items()
        if path in kinds
    ]
    uses.sort(key=lambda use: -use.opens)
    return _few_enough(uses)


def shown(path: str) -> str:
    """A path as text that every encoding can carry."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")


def _looked_at(paths: Iterable[str], mounts: Mounts) -> dict[str, tuple[int, str]]:
    """Size and file system of every path that may be a regular file; (-1, "") where unknown."""
    todo = list(paths)
    # Spread over all of them: names that come one after another are often alike.
    step = max(1, -(-len(todo) // MAX_LOOKS))
    ends_s = time.monotonic() + _LOOKING_S
    found: dict[str, tuple[int, str]] = dict.fromkeys(todo, (-1, ""))
    for path in todo[::step]:
        if time.monotonic() > ends_s:
            break
        if path == MORE:
            continue
        try:
            seen = os.stat(path)
        except (OSError, ValueError):
            continue
        if stat.S_ISREG(seen.st_mode):
            found[path] = seen.st_size, mounts.kind(seen.st_dev, path)
        else:
            del found[path]
    return found


class Mounts:
    """The file systems of `/proc/self/mountinfo`."""

    def __init__(self, text: str) -> None:
        self._devices: dict[str, str] = {}
        self._places: list[tuple[str, str]] = []
        for line in text.splitlines():
            left, _, right = line.partition(" - ")
            fields, kind = left.split(" "), right.partition(" ")[0]
            if len(fields) >= 5 and kind:
                self._devices[fields[2]] = kind
                self._places.append((_unescaped(fields[4]), kind))
        self._places.reverse()  # what was mounted last covers what lies below

    def kind(self, device: int, path: str) -> str:
        """The kernel's name of a file's file system, "" where unknown.

        By the device's number; by the longest mount point where that is none of the mounts'
        (subvolumes of btrfs have numbers of their own).
        """
        known = self._devices.get(f"{os.major(device)}:{os.minor(device)}")
        if known is not None:
            return known
        above = [item for item in self._places if _below(path, item[0])]
        return max(above, key=lambda item: len(item[0]), default=("", ""))[1]


def _below(path: str, place: str) -> bool:
    return path == place or path.startswith(place.rstrip("/") + "/")


def _unescaped(text: str) -> str:
    """Blanks and the like stand as octal numbers in mountinfo."""
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text


def _few_enough(uses: list[FileUse]) -> tuple[tuple[FileUse, ...], tuple[Gap, ...]]:
    """At most `MAX_ROWS`; the least opened ones then count under one name a process."""
    rest: dict[FileUse, int] = {}
    for use in uses[MAX_ROWS:]:
        key = use._replace(path=MORE, opens=0, size_bytes=-1, filesystem="")
        rest[key] = rest.get(key, 0) + use.opens
    kept = (*uses[:MAX_ROWS], *(key._replace(opens=count) for key, count in rest.items()))
    gaps: tuple[Gap, ...] = ()
    if any(use.path == MORE for use in kept):
        gaps = (Gap("names of some opened files", "more different files than are told apart"),)
    return kept, gaps
