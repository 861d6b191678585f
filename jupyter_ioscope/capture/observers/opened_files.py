"""Which files are opened, how often and when: an audit hook (PEP 578) counts Python's own opens.

Files that a C library opens (HDF5, LMDB, Arrow, OpenCV) raise no event and are not counted here.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any

from jupyter_ioscope.capture.loaders._torch_fetch import worker_marks
from jupyter_ioscope.capture.observers._file_kinds import file_uses
from jupyter_ioscope.capture.observers._observer import InWorker, Observed, Watched
from jupyter_ioscope.capture.observers._open_counts import KeptCounts, OpenCounts, read_kept
from jupyter_ioscope.capture.recorder import OpenEpoch, Recorder
from jupyter_ioscope.model.observed import PHASES

_SETUP, _FETCH, _STEP, _OTHER = (PHASES.index(name) for name in ("setup", "fetch", "step", "other"))
_ACCESS = os.O_RDONLY | os.O_WRONLY | os.O_RDWR
_MODE_OF = {os.O_RDONLY: 0, os.O_WRONLY: 1, os.O_RDWR: 2}
_FOLDERS_ONLY = getattr(os, "O_DIRECTORY", 0)

_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
# Python's own reading of source code. A user may well read such files as data.
_READERS_OF_SOURCE = ("linecache.py", "tokenize.py", "inspect.py", "traceback.py")
_LAST_EPOCHS = 8  # loops inside loops that are told apart


class Watch:
    """What is counted in this process while a profile runs."""

    def __init__(self, folder: str, counts: OpenCounts, phase: Callable[[], int]) -> None:
        self.pid = os.getpid()
        self._counts, self._phase = counts, phase
        self._skip = (folder, *_not_the_users(tuple(sys.path)))

    def opened(self, path: Any, flags: Any) -> None:
        """An open is about to happen, asked for by the frame two above this one."""
        if type(path) is not str:
            if isinstance(path, int):
                return  # a descriptor: opened before
            if isinstance(path, bytes):
                path = os.fsdecode(path)
            elif isinstance(path, (str, PurePath)):
                path = str(path)
            else:
                return  # asking it for its path would run the user's code once more
        if path.startswith(self._skip) or _by_python_itself(path, sys._getframe(2).f_code):
            return
        flags = flags if isinstance(flags, int) else 0
        if _FOLDERS_ONLY and flags & _FOLDERS_ONLY:
            return
        if not path.startswith(os.sep):
            path = os.path.join(os.getcwd(), path)
            if path.startswith(self._skip):
                return
        self._counts.note((path, self._phase(), _MODE_OF.get(flags & _ACCESS, 0)))


_watch: Watch | None = None
_hooked = False


def _audit(event: str, args: tuple[Any, ...]) -> None:
    """Runs at every audit event of the process for ever: without a profile it only returns."""
    watch = _watch
    if watch is None or (event != "open" and event != "sqlite3.connect"):
        return
    try:  # an error would make the user's own call fail
        if watch.pid == os.getpid():
            watch.opened(args[0], args[2] if event == "open" else os.O_RDWR)
    except Exception:
        pass


def _start(watch: Watch) -> None:
    """Count from now on. A hook can never be taken out: a process gets one, when first needed."""
    global _watch, _hooked
    if not _hooked:
        sys.addaudithook(_audit)
        _hooked = True
    _watch = watch


def _stop(watch: Watch) -> None:
    global _watch
    if _watch is watch:
        _watch = None


def _by_python_itself(path: str, caller: Any) -> bool:
    """Whether an import, a traceback or this package asks for the file."""
    file = caller.co_filename
    if file.startswith(("<frozen ", _OURS)):
        return True
    return path.endswith(".py") and file.endswith(_READERS_OF_SOURCE)


@functools.lru_cache(maxsize=1)  # a forked worker need not ask again
def _not_the_users(path: tuple[str, ...]) -> tuple[str, ...]:
    """Folders of the kernel's own files, and of Python and its packages on `sys.path`.

    Not asked of sysconfig, whose first answer takes 10 ms: a worker would start so much later.
    """
    packages = [name for name in path if name.endswith(("site-packages", "dist-packages"))]
    below = (f"{folder}{os.sep}" for folder in (os.path.dirname(os.__file__), *packages))
    zipped = [name for name in path if name.endswith(".zip")]
    return ("/proc/", "/sys/", "/dev/", _OURS, *zipped, *below)


class _ConsumerPhase:
    """What the consumer is doing, by its records so far."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._thread = threading.get_ident()
        self._seen = 0
        self._open: list[OpenEpoch] = []  # begun and not ended, the innermost loop last

    def __call__(self) -> int:
        phase, recorder, thread = self._now(), self._recorder, threading.get_ident()
        beside = thread not in (self._thread, recorder.newest_thread())
        # Inside a fetch a thread beside the loop works for the fetch.
        return _OTHER if beside and phase != _FETCH else phase

    def _now(self) -> int:
        recorder = self._recorder
        epoch = self._innermost(recorder.epochs)
        if epoch is None:
            return _OTHER if recorder.epochs else _SETUP
        if epoch.last_row >= 0:
            if epoch.batch_start_ns <= recorder.wait_end_ns(epoch):
                return _STEP
        elif not epoch.batch_start_ns:
            return _SETUP
        # In next(): only without workers does this process fetch.
        return _OTHER if recorder.loaders[epoch.loader].num_workers else _FETCH

    def _innermost(self, epochs: list[OpenEpoch]) -> OpenEpoch | None:
        count = len(epochs)
        if count > self._seen:
            # Loops that were left early never end: only so many are remembered.
            self._open = [*self._open, *epochs[self._seen : count]][-_LAST_EPOCHS:]
            self._seen = count
        still = self._open  # copied, never changed: several threads may be here
        while still and still[-1].end_ns is not None:
            still = still[:-1]
        self._open = still
        return still[-1] if still else None


def _worker_phase() -> Callable[[], int]:
    marks = worker_marks()  # of the thread that fetches: threads may help it

    def phase() -> int:
        return _FETCH if marks.start is not None else _OTHER

    return phase


class OpenedFiles:
    """The plug-in."""

    name = "opened files"

    def start(self, watched: Watched) -> Callable[[dict[int, int]], Observed]:
        counts = OpenCounts()
        watch = Watch(watched.folder, counts, _ConsumerPhase(watched.recorder))
        _start(watch)

        def end(workers: dict[int, int]) -> Observed:
            _stop(watch)
            kept = [
                (pid, workers.get(pid, worker), rows)
                for pid, worker, rows in read_kept(watched.folder)
            ]
            files, gaps = file_uses([(watch.pid, -1, counts.rows()), *kept], _mountinfo())
            return Observed(files=files, gaps=gaps)

        return end

    def start_in_worker(self, settings: InWorker, stack: contextlib.ExitStack) -> None:
        name = f"opens-{os.getpid()}-{time.monotonic_ns()}.bin"
        path = os.path.join(settings.folder, name)
        # Made with the first open: many workers open nothing.
        counts = OpenCounts(lambda: KeptCounts(path, settings.worker))
        stack.callback(counts.close)
        watch = Watch(settings.folder, counts, _worker_phase())
        stack.callback(_stop, watch)
        _start(watch)


def _mountinfo() -> str:
    try:
        return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


OBSERVER = OpenedFiles()
