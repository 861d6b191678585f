"""A worker's own counters when its loop begins and ends: exact, however short it lives."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from jupyter_ioscope.capture import procfs
from jupyter_ioscope.capture.observers._observer import InWorker, Observed, Watched
from jupyter_ioscope.capture.process_use import UNREADABLE, Counters, OwnCounters, parse_io


class OwnCountersObserver:
    """The plug-in. What it leaves in the folder, the sampler reads: see `read_own`."""

    name = "a worker's own counters"

    def start(self, watched: Watched) -> Callable[[dict[int, int]], Observed]:
        return lambda workers: Observed()

    def start_in_worker(self, settings: InWorker, stack: contextlib.ExitStack) -> None:
        path = os.path.join(settings.folder, f"io-{os.getpid()}-{settings.worker}.txt")
        if _note(path, os.O_CREAT):
            stack.callback(_note, path, 0)


def _note(path: str, flags: int) -> bool:
    # Once the profile is over its folder is gone: then there is nothing to be noted.
    with contextlib.suppress(OSError):
        line = b"%d;%s\n" % (
            time.monotonic_ns(),
            procfs.read("/proc/self/io", 512).replace(b"\n", b"|"),
        )
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | flags, 0o600)
        try:
            os.write(fd, line)
        finally:
            os.close(fd)
        return True
    return False


def read_own(folder: str) -> dict[int, OwnCounters]:
    """Process id -> what that worker noted; damaged files are passed over."""
    found = {}
    for path in sorted(Path(folder).glob("io-*-*.txt")):
        with contextlib.suppress(OSError, ValueError, IndexError):
            lines = [_parsed(line) for line in path.read_bytes().splitlines()]
            (first_ns, first), (last_ns, last) = lines[0], lines[-1]
            if first != UNREADABLE:
                ended = len(lines) > 1 and last != UNREADABLE
                found[int(path.stem.split("-")[1])] = OwnCounters(
                    first_ns, first, last_ns, last if ended else None
                )
    return found


def _parsed(line: bytes) -> tuple[int, Counters]:
    when, _, text = line.partition(b";")
    return int(when), parse_io(text.replace(b"|", b"\n"))


OBSERVER = OwnCountersObserver()
