"""Pauses of the garbage collector, told by Python itself (`gc.callbacks`)."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jupyter_ioscope.capture.observers._observer import InWorker, Observed, Watched
from jupyter_ioscope.model.observed import GcPause

_LEAST_NS = 1_000_000  # shorter pauses are not worth a record
_MOST = 20_000  # records a process
_AGAIN_S = 0.01  # after which an interrupt comes again
_ROW = struct.Struct("<qqii")

Keep = Callable[[int, int, int, int], None]  # start, end, generation, collected


class Pauses:
    """Times the collector's runs in this process and gives the long ones to `keep`.

    A child that is forked meanwhile carries the callback on and keeps nothing.
    """

    def __init__(self, keep: Keep) -> None:
        self._keep = keep
        self._pid = os.getpid()
        self._began_ns = 0
        self._left = _MOST

    def start(self) -> None:
        _forget_inherited()
        gc.callbacks.append(self._ran)

    def stop(self) -> None:
        with contextlib.suppress(ValueError):  # somebody may have cleared the list
            gc.callbacks.remove(self._ran)

    def _ran(self, phase: str, info: dict[str, Any]) -> None:
        try:
            now_ns = time.monotonic_ns()
            if phase == "start":
                self._began_ns = now_ns
                return
            began_ns, self._began_ns = self._began_ns, 0
            if not began_ns or now_ns - began_ns < _LEAST_NS or self._left <= 0:
                return
            if os.getpid() != self._pid:
                return
            self._left -= 1
            self._keep(began_ns, now_ns, info.get("generation", -1), info.get("collected", -1))
        except KeyboardInterrupt:
            _interrupt_again()


def _interrupt_again() -> None:
    """The user's interrupt came while the collector had called us: Python would print what is
    raised here and go on, and the loop would not end."""
    if not callable(signal.getsignal(signal.SIGINT)):
        return
    # A real signal, which also ends a call that waits.
    timer = threading.Timer(_AGAIN_S, os.kill, (os.getpid(), signal.SIGINT))
    timer.daemon = True
    timer.start()


def _forget_inherited() -> None:
    """A forked worker begins with its parent's callback: two would do the same work."""
    for callback in list(gc.callbacks):
        if isinstance(getattr(callback, "__self__", None), Pauses):
            gc.callbacks.remove(callback)


class _KeptPauses:
    """Appends each pause to a file: there are few, and a killed worker loses none."""

    def __init__(self, folder: str, worker: int) -> None:
        self._path = os.path.join(folder, f"gc-{os.getpid()}-{worker}.bin")

    def __call__(self, *row: int) -> None:
        # Once the profile is over its folder is gone, and so is the interest in pauses.
        with contextlib.suppress(OSError, struct.error):
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, _ROW.pack(*row))
            finally:
                os.close(fd)


def _kept_pauses(folder: str) -> Iterator[GcPause]:
    for path in sorted(Path(folder).glob("gc-*.bin")):
        with contextlib.suppress(OSError, ValueError):
            _, pid, worker = path.stem.split("-", 2)
            raw = path.read_bytes()
            whole = len(raw) // _ROW.size * _ROW.size
            for row in _ROW.iter_unpack(raw[:whole]):
                yield GcPause(int(pid), int(worker), *row)


class Garbage:
    """The plug-in."""

    name = "garbage collector"

    def start(self, watched: Watched) -> Callable[[dict[int, int]], Observed]:
        found: list[GcPause] = []
        pid = os.getpid()
        pauses = Pauses(lambda *row: found.append(GcPause(pid, -1, *row)))
        pauses.start()

        def end(workers: dict[int, int]) -> Observed:
            pauses.stop()
            own = [
                row._replace(worker=workers.get(row.pid, row.worker))
                for row in _kept_pauses(watched.folder)
            ]
            rows = sorted((*found, *own), key=lambda row: row.start_ns)
            return Observed(gc_pauses=tuple(rows))

        return end

    def start_in_worker(self, settings: InWorker, stack: contextlib.ExitStack) -> None:
        pauses = Pauses(_KeptPauses(settings.folder, settings.worker))
        stack.callback(pauses.stop)
        pauses.start()


OBSERVER = Garbage()
