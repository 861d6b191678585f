"""Follows one child process to its end and makes sure that nothing of it is left."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import select
import signal
import time
from collections.abc import Iterable
from typing import Any

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.trials import tree
from jupyter_ioscope.trials.crashes import how_it_ended
from jupyter_ioscope.trials.outcome import Cancelled, Watch, hanging, result_of
from jupyter_ioscope.units import bytes_text

_POLL_S = 0.05
_MEMORY_EVERY_S = 0.25  # PSS costs the watched process about 0.5 ms a reading
_SHARED = "/dev/shm/"
_STOP_S = 0.1
_LOOK_S = 0.003  # between two looks whether all have ended
_GRACE_S = 0.5  # for resource trackers to unlink semaphores once everything else is gone


class Child:
    """A started process, its report pipe, and what was seen of it."""

    def __init__(self, pid: int, read_fd: int, arm: str) -> None:
        self.pid, self.read_fd, self.arm = pid, read_fd, arm
        self.peak_bytes = 0
        self.seen: dict[int, str] = {pid: tree.started(pid)}  # with the time when each began
        self.status: int | None = None
        self._buffer = b""
        os.set_blocking(read_fd, False)

    def follow(self, watch: Watch) -> dict[str, Any]:
        """Wait for the job's result.

        Raises:
            TrialError: it failed, died, or was silent for too long.
            Cancelled: `watch.cancel` was set.
        """
        heard = looked = time.monotonic()
        report: dict[str, Any] = {}
        while True:
            ended = self._reap()
            for message in self._messages():
                heard = time.monotonic()
                if message["kind"] != "beat":
                    return result_of(message, self.arm)
                report = message
            if ended:
                raise TrialError(f"arm {self.arm} failed: its process {how_it_ended(self.status)}")
            if watch.cancelled():
                raise Cancelled
            now = time.monotonic()
            if now - heard > watch.silence_s:
                raise hanging(self.arm, watch.silence_s)
            if now - looked >= _MEMORY_EVERY_S:
                looked = now
                self._look(watch.memory_bytes)
            watch.tick(report)

    def _look(self, limit_bytes: int) -> None:
        pids = [self.pid, *tree.descendants(self.pid)]
        self._saw(pids)
        self.peak_bytes = max(self.peak_bytes, tree.memory_bytes(pids))
        # Looked at only when it may matter: one more reading of every process.
        held = tree.own_memory_bytes(pids) if 0 < limit_bytes < 2 * self.peak_bytes else 0
        if 0 < limit_bytes < held:
            raise TrialError(
                f"arm {self.arm} was stopped: its processes held {bytes_text(held)}, and "
                f"{bytes_text(limit_bytes)} is what the trials may take of the memory that was "
                "free; use fewer workers or smaller batches"
            )

    def _messages(self) -> list[dict[str, Any]]:
        if not select.select([self.read_fd], [], [], _POLL_S)[0]:
            return []
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.read_fd, 1 << 16):
                self._buffer += data
        *lines, self._buffer = self._buffer.split(b"\n")
        if not lines:
            time.sleep(_POLL_S)  # end of file: the child is about to end
        return [json.loads(line) for line in lines if line]

    def _reap(self) -> bool:
        if self.status is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                pid, status = self.pid, 0
            if pid:
                self.status = status
        return self.status is not None

    def end(self) -> None:
        """Kill the whole tree, wait for it, and remove what it may have left in shared memory."""
        # Stopped, nobody makes anything new between the look and the end.
        self._reap()
        self._find_and_stop()
        self._until_stopped()
        segments = _segments(self.seen)
        segments -= _segments({os.getpid()})  # the user's own, inherited
        # Resource trackers ignore SIGTERM: they see everybody else go, tidy up, and end. One that
        # was only about to start cannot, so what is left is removed below.
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)
        until = time.monotonic() + _GRACE_S
        while self._alive() and time.monotonic() < until:
            time.sleep(_LOOK_S)
        self._signal(signal.SIGKILL)
        if self.status is None:
            with contextlib.suppress(ChildProcessError):
                self.status = os.waitpid(self.pid, 0)[1]
        until = time.monotonic() + _GRACE_S
        while self._members() and time.monotonic() < until:
            time.sleep(_LOOK_S)
        os.close(self.read_fd)
        for pid in self.seen:
            segments.update(glob.glob(f"/dev/shm/torch_{pid}_*"))
        for path in segments:
            with contextlib.suppress(OSError):
                os.unlink(path)

    def _until_stopped(self) -> None:
        """A signal takes a moment to arrive where the process runs on another core."""
        until = time.monotonic() + _STOP_S
        while time.monotonic() < until and any(tree.runs(pid) for pid in self.seen):
            time.sleep(0.001)

    def _alive(self) -> bool:
        self._reap()
        return bool(self._members())

    def _find_and_stop(self) -> None:
        """Until nobody new is there: who is not stopped yet may start others."""
        known = -1
        while known < len(self.seen):
            known = len(self.seen)
            self._signal(signal.SIGSTOP)
            if tree.started(self.pid):  # all of it is below: it keeps orphans
                self._saw(tree.descendants(self.pid))
            else:
                self._saw(tree.group_members(self.pid))

    def _saw(self, pids: Iterable[int]) -> None:
        for pid in pids:
            if pid not in self.seen:
                self.seen[pid] = tree.started(pid)

    def _members(self) -> list[int]:
        """Those of the processes seen that are still there."""
        return [pid for pid, began in self.seen.items() if began and tree.started(pid) == began]

    def _signal(self, number: int) -> None:
        for pid in self._members():
            if pid != self.pid and tree.group(pid) != self.pid:  # a program in its own group
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        # Its group is gone or not yet made when it has just ended or just begun.
        for send in (os.killpg, os.kill) if self.status is None else (os.killpg,):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                send(self.pid, number)


def _segments(pids: Iterable[int]) -> set[str]:
    """Shared memory and semaphores that these processes have open or mapped, by path.

    Their files are told by inode, too: sem_open(3) maps a file by a name that it then takes away,
    after giving it the one that stays.
    """
    found: set[str] = set()
    inodes: set[int] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    path = os.readlink(f"/proc/{pid}/fd/{fd}")
                    if path.startswith(_SHARED):
                        found.add(path)
                        inodes.add(os.stat(f"/proc/{pid}/fd/{fd}").st_ino)
        with contextlib.suppress(OSError), open(f"/proc/{pid}/maps") as maps:
            for line in maps:
                before, there, name = line.rstrip("\n").partition(_SHARED)
                if there:
                    found.add(_SHARED + name)
                    inodes.add(int(before.split()[4]))
    if inodes:
        with contextlib.suppress(OSError), os.scandir(_SHARED) as entries:
            found.update(entry.path for entry in entries if entry.inode() in inodes)
    return {path for path in found if not path.endswith(" (deleted)")}
