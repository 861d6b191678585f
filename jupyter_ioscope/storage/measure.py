"""The requests of a health check, made in a child process: only it touches the path.

Each step is given to `say` before it begins and when it is done, so that a parent knows what the
device was asked when it stopped answering.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from jupyter_ioscope.model.storage import Timing
from jupyter_ioscope.paths import nothing_in, special
from jupyter_ioscope.storage import page_cache, pressure
from jupyter_ioscope.storage.own_engine import (
    LARGE,
    SMALL,
    Opened,
    buffer_of,
    line_for_a_core,
    opened,
    reader,
    scattered,
    sequential,
    timed,
    timing,
    writer,
)
from jupyter_ioscope.units import bytes_text

MIB = 1 << 20
_SYNC_EACH = 8 * MIB  # of a buffered write
PREFIX = ".ioscope-check-"
_ONLY_READ = "name a file in it, which is then only read"
_LOOKS = 3  # at what the machine waits for, if it does
IOWAIT_GOOD = 0.05  # of the health script that thresholds names

Say = Callable[..., None]


class Plan(NamedTuple):
    """How much a check may do. Seconds are for one step each."""

    write_bytes: int
    read_bytes: int
    large_s: float
    random_s: float
    fsyncs: int
    files: int
    small_s: float
    quiet_s: float


# The quick one writes 48 MiB and less than 1 MiB of small files, and takes less than 3 s.
QUICK = Plan(48 * MIB, 64 * MIB, 0.45, 0.35, 20, 64, 0.12, 0.3)
THOROUGH = Plan(1024 * MIB, 2048 * MIB, 5.0, 3.0, 200, 500, 1.0, 2.0)


class Refused(Exception):
    """The place cannot be measured; the text is one sentence for the user."""


def check(path: str, plan: Plan, say: Say) -> None:
    """Measure a folder or a file.

    Raises:
        Refused: it cannot be measured.
        OSError: the system refuses in the midst of it.
    """
    real, size = folder_for(path, plan, say)
    is_folder = not size
    quiet = _quiet(plan, say)
    if is_folder:
        _folder(real, plan, say)
    else:
        _file(real, size, plan, say)
    say("during", shares=pressure.between(quiet, pressure.read()))


def _quiet(plan: Plan, say: Say) -> pressure.Reading:
    """Look how much the machine waits for I/O before the check; the reading at the end.

    A moment in which others wait may be the last of what they wrote, so that it is looked again.
    """
    say("quiet", doing="waiting a moment")
    begin = last = pressure.read()
    lowest = 1.0
    for _ in range(_LOOKS):
        time.sleep(plan.quiet_s)
        now = pressure.read()
        lowest, last = min(lowest, pressure.between(last, now)[1]), now
        if lowest <= IOWAIT_GOOD:
            break
    say("quiet", shares=pressure.between(begin, last), lowest=lowest)
    return last


def folder_for(path: str, plan: Plan, say: Say, hint: str = _ONLY_READ) -> tuple[str, int]:
    """(real path, size of a file or 0 for a folder) of what a plan can be used on; `hint` is what
    to do where a folder cannot be written to.

    Raises:
        Refused: it cannot; a folder must take what the plan writes.
    """
    say("look", doing="looking at the path")
    real, is_folder, size = _looked_at(path)
    room = os.statvfs(real)
    free = room.f_bavail * room.f_frsize if room.f_blocks else -1  # no blocks: it does not say
    say("look", path=real, folder=is_folder, size=size, free=free)
    if is_folder:
        _refuse_folder(real, plan, free, hint)
    return real, size


def _looked_at(path: str) -> tuple[str, bool, int]:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise Refused(f"there is no {path!r}") from None
    except PermissionError:
        raise Refused(f"{path!r} may not be looked at: no permission for a folder above") from None
    real = os.path.realpath(path)
    if stat.S_ISDIR(found.st_mode):
        return real, True, 0
    if not stat.S_ISREG(found.st_mode):
        what = special(found.st_mode) or "no regular file"
        raise Refused(f"{path!r} is {what}: name a folder or a file")
    if not os.access(real, os.R_OK):
        raise Refused(f"{path!r} may not be read: no permission")
    if found.st_size < SMALL:
        what = f"of {found.st_size} bytes only" if found.st_size else nothing_in(found)
        raise Refused(f"{path!r} is {what}: name a larger file, or its folder")
    return real, False, found.st_size


def _refuse_folder(path: str, plan: Plan, free: int, hint: str) -> None:
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        raise Refused(f"{path!r} is read-only: {hint}")
    if not os.access(path, os.W_OK | os.X_OK):
        raise Refused(f"{path!r} may not be written to (no permission): {hint}")
    if free < 0:
        raise Refused(f"{path!r} does not say how much room it has: {hint}")
    # Twice, so that nobody else runs out of space because of the check.
    need = 2 * plan.write_bytes
    if free < need:
        raise Refused(
            f"{path!r} has {bytes_text(free)} free and the check wants {bytes_text(need)}, "
            f"to use half of it for a moment: {hint}"
        )


def _folder(path: str, plan: Plan, say: Say) -> None:
    say("folder", doing="making a private folder")
    with private_folder(path) as folder:
        say("folder", path=folder)
        name = os.path.join(folder, "large")
        size = _write(name, plan, say)
        _fsyncs(os.path.join(folder, "synced"), plan, say)
        _small_files(folder, plan, say)
        _reads(name, size, plan, say)
        say("clean up", doing="removing the private folder")
    say("clean up", done=True)


@contextlib.contextmanager
def private_folder(path: str) -> Iterator[str]:
    """A folder that nobody else uses, removed with all in it whatever happens.

    Raises:
        OSError: it cannot be made.
    """
    # Being told to end must not come between a folder's making and its removal.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
    try:
        folder = tempfile.mkdtemp(prefix=PREFIX, dir=path)
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            yield folder
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _write(name: str, plan: Plan, say: Say) -> int:
    say("write", doing="writing")
    file = opened(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    try:
        _reserve(file.fd, plan.write_bytes)
        with buffer_of(LARGE, random_bytes=True) as buffer:
            offsets = sequential(plan.write_bytes, LARGE)
            took = timed(_large_writer(file, buffer), offsets, plan.large_s)
            before = time.perf_counter()
            os.fsync(file.fd)
            more_s = time.perf_counter() - before
        os.ftruncate(file.fd, len(took) * LARGE)
    finally:
        os.close(file.fd)
    row = timing("sequential write", took, LARGE, more_s)
    say("write", timing=row, direct=file.direct, bytes=len(took) * LARGE)
    return len(took) * LARGE


def _reserve(fd: int, size: int) -> None:
    """Ask the file system for the space in one request, where it knows how: writes then time the
    device, not the search for free blocks.

    Not `os.posix_fallocate`: where a file system has no such request (NFS before 4.2, most FUSE),
    the C library writes a byte into every block instead, 12,288 requests for 48 MiB.
    """
    libc = ctypes.CDLL(None)
    call = getattr(libc, "fallocate64", None) or getattr(libc, "fallocate", None)
    if call is not None:  # Linux
        call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
        call(fd, 0, 0, size)


def _large_writer(file: Opened, buffer: mmap.mmap) -> Callable[[int], object]:
    write = writer(file.fd, buffer)
    if file.direct:
        return write

    def request(offset: int) -> None:
        write(offset)
        # Otherwise all goes to the page cache at once, and a slow device's fsync takes the time.
        if (offset + LARGE) % _SYNC_EACH == 0:
            os.fsync(file.fd)

    return request


def _fsyncs(name: str, plan: Plan, say: Say) -> None:
    say("fsync", doing="syncing small writes")
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with buffer_of(SMALL, random_bytes=True) as buffer, line_for_a_core() as line:
        write = writer(fd, buffer)

        def request(offset: int) -> None:
            write(offset)
            os.fsync(fd)

        try:
            took = timed(request, range(0, plan.fsyncs * SMALL, SMALL), 2 * plan.small_s, line)
        finally:
            os.close(fd)
    say("fsync", timing=timing("fsync", took), bytes=len(took) * SMALL)


def _small_files(folder: str, plan: Plan, say: Say) -> None:
    say("small files", doing="making small files")
    names = [os.path.join(folder, f"small-{number}") for number in range(plan.files)]
    content = os.urandom(SMALL)

    def create(number: int) -> None:
        fd = os.open(names[number], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, content)
        finally:
            os.close(fd)

    made = timed(create, range(plan.files), plan.small_s)
    there = range(len(made))
    found = timed(_opener(names), [*there] * 4, plan.small_s)
    looked = timed(lambda number: os.stat(names[number]), [*there] * 4, plan.small_s)
    say("small files", timing=timing("create", made, SMALL), bytes=len(made) * SMALL)
    say("small files", timing=timing("open", found))
    say("small files", timing=timing("stat", looked))


def _opener(names: list[str]) -> Callable[[int], None]:
    def request(number: int) -> None:
        os.close(os.open(names[number], os.O_RDONLY | os.O_CLOEXEC))

    return request


def _file(path: str, size: int, plan: Plan, say: Say) -> None:
    say("small files", doing="opening the file")
    took = timed(_opener([path]), [0] * 256, plan.small_s)
    say("small files", timing=timing("open", took))
    _reads(path, size, plan, say)


def _reads(path: str, size: int, plan: Plan, say: Say) -> None:
    """Large reads in order, then small ones in random order, and who answered them."""
    say("sequential read", doing="reading in order")
    file = opened(path, os.O_RDONLY)
    try:
        upto = min(size, plan.read_bytes)
        block = LARGE if upto >= LARGE else SMALL
        again = file.direct  # from the page cache a second time, otherwise
        offsets = sequential(upto, block, again)
        row = _read("sequential read", file, size, block, offsets, plan.large_s)
        say("sequential read", **row)
        say("random read", doing="reading here and there")
        offsets = scattered(size, SMALL, os.getpid(), again)
        row = _read("random read", file, size, SMALL, offsets, plan.random_s)
        say("random read", **row)
    finally:
        os.close(file.fd)


def _read(
    name: str, file: Opened, size: int, block: int, offsets: Iterator[int], seconds: float
) -> dict[str, Any]:
    resident, method = -1.0, ""
    if not file.direct:
        page_cache.evict(file.fd)
        resident, method = page_cache.resident(file.fd, size)
        if block == SMALL:
            # Otherwise the kernel reads ahead, and the next small read finds its data there.
            with contextlib.suppress(OSError, AttributeError):
                os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_RANDOM)
    before = device_bytes()
    with buffer_of(block) as buffer, line_for_a_core() as line:
        took = timed(reader(file.fd, buffer), offsets, seconds, line)
    from_device = device_bytes() - before if before >= 0 else -1
    row: Timing = timing(name, took, block, queued_s=line.taken_ns / 1e9)
    return {
        "timing": row,
        "direct": file.direct,
        "resident": resident,
        "method": method,
        "from_device": from_device,
    }


def device_bytes() -> int:
    """Bytes that the storage layer brought this process so far (proc_pid_io(5)); -1 if unknown."""
    with contextlib.suppress(OSError, ValueError), open("/proc/self/io") as file:
        for line in file:
            if line.startswith("read_bytes:"):
                return int(line.split()[1])
    return -1
