"""A worker's own counters when its loop begins and ends: exact, however short it lives.

Its private memory is exact for loops of several seconds, estimated from a sample of its pages for
loops of half a second and more, and not known for shorter ones: asking would cost too much.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

from jupyter_ioscope.capture import procfs
from jupyter_ioscope.capture.observers._observer import InWorker, Observed, Watched
from jupyter_ioscope.capture.own_pages import sampled_private_bytes
from jupyter_ioscope.capture.process_use import (
    UNREADABLE,
    Counters,
    OwnCounters,
    OwnMemory,
    parse_io,
    private_bytes,
)

# The kernel walks all pages of a process to tell which are private: measured 50 to 90 ns a page,
# 5 ms for the 220 MB of a worker with torch. So it is asked once, as the loop ends, and only of
# workers whose loop took many pages (a page taken is a fault; these are 16 MB, what copies on write
# are judged from) and lasted so long that asking adds at most 0.15 % to it, which of a loop that
# waits half of its time is twice as much of its CPU. Of shorter loops some of the pages are looked
# at, which may add 0.3 %: of memory that workers copy there is something to tell then.
_PAGE_NS = 90
_PART, _PART_SAMPLED = 0.0015, 0.003
_FAULTS = 4_000


class OwnCountersObserver:
    """The plug-in. What it leaves in the folder, the sampler reads: see `read_own`."""

    name = "a worker's own counters"

    def start(self, watched: Watched) -> Callable[[dict[int, int]], Observed]:
        return lambda workers: Observed()

    def start_in_worker(self, settings: InWorker, stack: contextlib.ExitStack) -> None:
        path = os.path.join(settings.folder, f"io-{os.getpid()}-{settings.worker}.txt")
        if _note(path, os.O_CREAT, private=-1):
            stack.callback(_end, path, time.monotonic_ns(), _faults())


def _end(path: str, began_ns: int, faults: int) -> None:
    _note(path, 0, _private(time.monotonic_ns() - began_ns, _faults() - faults))


def _private(lasted_ns: int, faults: int) -> int:
    """Private memory, asked for as far as the length of the loop and the pages it took allow; -1
    where it is not known."""
    if faults < _FAULTS:
        return -1
    with contextlib.suppress(OSError, ValueError, IndexError):
        resident = int(procfs.read("/proc/self/statm", 256).split()[1])
        if resident * _PAGE_NS <= _PART * lasted_ns:
            return private_bytes(procfs.read("/proc/self/smaps_rollup", 4096))
    return sampled_private_bytes(_PART_SAMPLED * lasted_ns)


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def _note(path: str, flags: int, private: int) -> bool:
    # Once the profile is over its folder is gone: then there is nothing to be noted.
    with contextlib.suppress(OSError):
        line = b"%d;%s%s\n" % (
            time.monotonic_ns(),
            procfs.read("/proc/self/io", 512).replace(b"\n", b"|"),
            _memory(private),
        )
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | flags, 0o600)
        try:
            os.write(fd, line)
        finally:
            os.close(fd)
        return True
    return False


def _memory(private: int) -> bytes:
    """In the form of the lines of `io`, so that one parser steps over it."""
    _, resident, of_files, *_ = procfs.read("/proc/self/statm", 256).split()
    anonymous = (int(resident) - int(of_files)) * resource.getpagesize()
    return b"anonymous: %d|private: %d|" % (anonymous, private)


def read_own(folder: str) -> dict[int, OwnCounters]:
    """Process id -> what that worker noted; damaged files are passed over."""
    found = {}
    for path in sorted(Path(folder).glob("io-*-*.txt")):
        with contextlib.suppress(OSError, ValueError, IndexError):
            lines = [_parsed(line) for line in path.read_bytes().splitlines()]
            (first_ns, first, before), (last_ns, last, after) = lines[0], lines[-1]
            if first != UNREADABLE:
                ended = len(lines) > 1 and last != UNREADABLE
                found[int(path.stem.split("-")[1])] = OwnCounters(
                    first_ns,
                    first,
                    last_ns,
                    last if ended else None,
                    before,
                    after if ended else OwnMemory(),
                )
    return found


def _parsed(line: bytes) -> tuple[int, Counters, OwnMemory]:
    when, _, text = line.partition(b";")
    fields = dict(part.partition(b": ")[::2] for part in text.split(b"|"))
    memory = OwnMemory(int(fields.get(b"anonymous", -1)), int(fields.get(b"private", -1)))
    return int(when), parse_io(text.replace(b"|", b"\n")), memory


OBSERVER = OwnCountersObserver()
