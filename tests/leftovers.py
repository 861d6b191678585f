"""What a process has now, to compare with what it has later: nothing may be left behind."""

from __future__ import annotations

import gc
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def children() -> set[int]:
    """Processes below this one that should end, without zombies."""
    return {child for child in everything_below() if not _stays(child)}


def everything_below() -> set[int]:
    """All processes below this one, without zombies."""
    found: set[int] = set()
    todo = [os.getpid()]
    while todo:
        for task in Path("/proc", str(todo.pop()), "task").glob("*/children"):
            try:
                below = [int(word) for word in task.read_text().split()]
            except OSError:
                continue
            found.update(below)
            todo.extend(below)
    return {child for child in found if _alive(child)}


def zombies() -> set[int]:
    """Children of this process that ended and that nobody waited for."""
    found: set[int] = set()
    for task in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            found.update(int(word) for word in task.read_text().split())
    return {child for child in found if not _alive(child) and Path(f"/proc/{child}").exists()}


def _stays(pid: int) -> bool:
    """Processes that are meant to stay: the sampler's helper, multiprocessing's own servants."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return any(word in command for word in (b"sampler_process", b"resource_tracker", b"forkserver"))


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (OSError, IndexError):
        return False


def _temporary() -> set[str]:
    folder = Path(tempfile.gettempdir())
    return {path.name for path in folder.iterdir() if path.name.startswith(("ioscope", ".ioscope"))}


def _shared_memory() -> set[str]:
    folder = Path("/dev/shm")
    if not folder.is_dir():
        return set()
    inodes = {}
    for path in folder.iterdir():
        with suppress(OSError):
            inodes[path.name] = path.stat().st_ino
    theirs = _mapped_by_others() if inodes else set()
    return {name for name, inode in inodes.items() if inode not in theirs}


def _mapped_by_others() -> set[int]:
    """Files (by inode) of shared memory that processes not below this one have mapped or open:
    theirs, not left by ours. A semaphore's maker has it mapped by a name that is gone since."""
    ours = {os.getpid(), *everything_below()}
    found: set[int] = set()
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) not in ours:
            found |= _mapped(process) | _opened(process)
    return found


def _mapped(process: Path) -> set[int]:
    with suppress(OSError):
        lines = (process / "maps").read_text(errors="replace").splitlines()
        return {int(line.split()[4]) for line in lines if "/dev/shm/" in line}
    return set()


def _opened(process: Path) -> set[int]:
    found = set()
    with suppress(OSError):
        for link in (process / "fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                if os.readlink(link).startswith("/dev/shm/"):
                    found.add(link.stat().st_ino)
    return found


def _threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def now() -> dict[str, object]:
    """Children, threads by name, temporary files, shared memory, number of descriptors."""
    gc.collect()
    return {
        "children": children(),
        "threads": _threads(),
        "temporary files": _temporary(),
        "shared memory": _shared_memory(),
        "descriptors": _descriptors(),
    }


@contextmanager
def nothing_left_behind(patience_s: float = 5.0) -> Iterator[None]:
    """Fails when the block leaves a process, thread, file or descriptor.

    The sampler's helper is meant to stay for the life of a kernel: start it before the block.
    What is not there at every look is another program's, which was about to let go of it.
    """
    before = now()
    yield
    left = left_since(before, patience_s)
    if left:
        raise AssertionError(f"left behind: {left}")


def left_since(before: dict[str, object], patience_s: float) -> dict[str, object]:
    """What is still there after a while of what `before` did not hold, by kind: names, or a number
    of descriptors."""
    deadline_s = time.monotonic() + patience_s
    left = _more(before, now())
    while left and time.monotonic() < deadline_s:
        time.sleep(0.05)
        left = _in_both(left, _more(before, now()))
    return left


def _in_both(one: dict[str, object], two: dict[str, object]) -> dict[str, object]:
    both: dict[str, object] = {}
    for what, value in one.items():
        other = two.get(what)
        if isinstance(value, set) and isinstance(other, set):
            if value & other:
                both[what] = value & other
        elif other is not None:
            both[what] = other
    return both


def _more(before: dict[str, object], after: dict[str, object]) -> dict[str, object]:
    left: dict[str, object] = {}
    for what, value in after.items():
        old = before[what]
        if isinstance(value, set) and isinstance(old, set):
            if value - old:
                left[what] = value - old
        elif isinstance(value, int) and isinstance(old, int) and value > old:
            left[what] = value - old
    return left
