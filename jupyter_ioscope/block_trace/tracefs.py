"""A private trace instance that records requests of block devices, and its removal.

An instance is a folder in `instances/` of tracefs (Documentation/trace/ftrace.rst, "Instances").
Its name says which process it belongs to, so that one whose owner was killed is found and removed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re

from jupyter_ioscope.process_stat import STARTED, stat_fields

_EVENTS = ("block_rq_insert", "block_rq_issue", "block_rq_complete")
_PREFIX = "ioscope-"
_NAME = re.compile(r"ioscope-(\d+)-(\d+)")
# How lines shall look, whatever the machine's administrator set for other traces.
_PLAIN = (("context-info", "1"), ("raw", "0"), ("hex", "0"), ("bin", "0"), ("latency-format", "0"))
# CLOCK_MONOTONIC, as everything else here; kernels before 3.17 lack it.
_CLOCKS = ("mono", "global")
_INITIAL_PIDS = "pid:[4026531836]"  # PROC_PID_INIT_INO of include/linux/proc_ns.h
_CHUNK_BYTES = 1 << 16
_LEAST_KIB, _MOST_KIB = 64, 16 << 10  # of the buffer of one CPU
_LOST = re.compile(rb"^(?:entries|overrun|commit overrun|dropped events): (\d+)$", re.M)


class NotHereError(Exception):
    """Block requests cannot be traced here. The text is the reason, and what would help."""


def find(proc: str = "/proc", sys_root: str = "/sys") -> str:
    """The folder of a tracefs that this process may use.

    Raises:
        NotHereError: there is none, it may not be used, or the kernel has no such events.
    """
    usual = (f"{sys_root}/kernel/tracing", f"{sys_root}/kernel/debug/tracing")
    reason = ""
    for folder in (*usual, *_mounts(proc)):
        try:
            os.listdir(f"{folder}/instances")
            if not os.path.exists(f"{folder}/events/block"):
                raise NotHereError("this kernel has no trace events for requests of block devices")
            if not os.access(f"{folder}/instances", os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return folder
        except FileNotFoundError:
            continue
        except OSError as error:
            reason = reason or _refused(folder, error)
    raise NotHereError(
        reason
        or "tracefs is not mounted here; ask whoever runs this machine for "
        "`mount -t tracefs nodev /sys/kernel/tracing`, or for that folder inside the container"
    )


def _refused(folder: str, error: OSError) -> str:
    what = error.strerror or str(error)
    return (
        f"{folder} may not be read and written by this user ({what}): it takes root, or rights "
        "that whoever runs this machine gives"
    )


def _mounts(proc: str) -> list[str]:
    """Where else tracefs is mounted."""
    try:
        with open(f"{proc}/self/mounts", encoding="utf-8", errors="replace") as file:
            rows = [line.split(" ") for line in file]
    except OSError:
        return []
    # Blanks in a path stand as octal numbers; tracefs at such a place is passed over.
    return [row[1] for row in rows if len(row) > 2 and row[2] == "tracefs" and "\\" not in row[1]]


def sees_own_pids(proc: str = "/proc") -> bool:
    """Whether process ids of a trace are those of this process: not in a namespace of its own."""
    try:
        return os.readlink(f"{proc}/self/ns/pid") == _INITIAL_PIDS
    except OSError:
        return False


def remove_left_over(folder: str, proc: str = "/proc") -> None:
    """Remove instances whose process is gone. The kernel keeps those that somebody reads, also
    where their process only looks gone from inside a container."""
    with contextlib.suppress(OSError):
        for name in os.listdir(f"{folder}/instances"):
            found = _NAME.fullmatch(name)
            if found is not None and _started(proc, int(found[1])) != found[2]:
                _remove(f"{folder}/instances/{name}")


def _started(proc: str, pid: int) -> str:
    """When a process began, in clock ticks since boot; "" if gone."""
    fields = stat_fields(pid, proc)
    return fields[STARTED] if len(fields) > STARTED else ""


def _remove(instance: str) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(instance)


class Instance:
    """A private instance that records from now on, until `close`.

    Args:
        folder: as `find` gives it.
        buffer_kib: for all CPUs together; memory of the kernel.
        keep_first: once the buffer is full, whether the newest events are lost and not the oldest.

    Raises:
        NotHereError: the kernel refuses it; nothing is left over.
    """

    def __init__(
        self, folder: str, buffer_kib: int = 16 << 10, keep_first: bool = False, proc: str = "/proc"
    ) -> None:
        remove_left_over(folder, proc)
        self.path = f"{folder}/instances/{_PREFIX}{os.getpid()}-{_started(proc, os.getpid())}"
        self._pipe = -1
        _remove(self.path)  # an earlier one of this process, which somebody else was reading
        try:
            os.mkdir(self.path)
        except OSError as error:
            raise NotHereError(_refused(f"{folder}/instances", error)) from error
        try:
            self.clock = self._set_up(buffer_kib, keep_first)
        except OSError as error:
            self.close()
            raise NotHereError(_refused(self.path, error)) from error
        except BaseException:
            self.close()
            raise

    def _set_up(self, buffer_kib: int, keep_first: bool) -> str:
        per_cpu = max(_LEAST_KIB, min(_MOST_KIB, buffer_kib // max(1, os.cpu_count() or 1)))
        self._write("tracing_on", "0")
        self._write("buffer_size_kb", str(per_cpu))
        for name, value in (*_PLAIN, ("overwrite", "0" if keep_first else "1")):
            with contextlib.suppress(OSError):  # not every kernel has them all for an instance
                self._write(f"options/{name}", value)
        clock = self._set_clock()
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        # Before anything is recorded: from now on nobody else takes the instance for left over.
        self._pipe = os.open(f"{self.path}/trace_pipe", flags)
        for event in _EVENTS:
            self._write(f"events/block/{event}/enable", "1")
        self._write("tracing_on", "1")
        return clock

    def _set_clock(self) -> str:
        for name in _CLOCKS:
            with contextlib.suppress(OSError):
                self._write("trace_clock", name)
                return name
        return "local"

    def _write(self, name: str, text: str) -> None:
        fd = os.open(f"{self.path}/{name}", os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)

    def read(self) -> bytes:
        """The next lines, which are then gone from the buffer; empty where there are none now.

        Raises:
            OSError: the instance is broken.
        """
        try:
            return os.read(self._pipe, _CHUNK_BYTES)
        except BlockingIOError:
            return b""

    def stop(self) -> None:
        """Record no more; what is in the buffer can still be read."""
        with contextlib.suppress(OSError):
            self._write("tracing_on", "0")

    def lost(self) -> int:
        """Events that found no place in the buffer, or were overwritten or not read until now."""
        total = 0
        with contextlib.suppress(OSError):
            for cpu in os.listdir(f"{self.path}/per_cpu"):
                with open(f"{self.path}/per_cpu/{cpu}/stats", "rb") as file:
                    total += sum(map(int, _LOST.findall(file.read())))
        return total

    def close(self) -> None:
        """End and remove it. Idempotent."""
        fd, self._pipe = self._pipe, -1
        if fd >= 0:
            self.stop()
            with contextlib.suppress(OSError):
                os.close(fd)
        _remove(self.path)
