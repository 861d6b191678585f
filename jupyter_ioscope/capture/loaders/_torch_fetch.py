"""torch's fetchers, with properties that note when their attributes are read.

`fetch` is read when a fetch begins and `collate_fn` when the items are there and are about to be
joined. Each property returns exactly what torch put there, and leaves no frame behind.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

from jupyter_ioscope.capture.records import Usage, usage
from jupyter_ioscope.capture.sample_checksums import LEAST_FETCH_NS


class Marks(threading.local):
    """What the running fetch of this thread has noted: its start, when its collate began, and, of
    a long one, the indices it was asked for."""

    start: Usage | None = None
    collate_start_ns: int = 0
    indices: Any = None

    def take(self) -> tuple[Usage, int] | None:
        """(start, collate start or 0) of the last fetch, once; None if there was none."""
        start = self.start
        if start is None:
            return None
        self.start = None
        return start, self.collate_start_ns


MARKS = Marks()


class WorkerMarks:
    """The same in a recorded worker, of the thread that fetches for it: what belongs to each thread
    takes longer to find than all the rest of a short record."""

    __slots__ = ("collate_start_ns", "light", "start", "thread")

    def __init__(self) -> None:
        self.start: Usage | int | None = None  # of a fetch that notes only the time: that time
        self.collate_start_ns = 0
        self.light = False  # whether the next fetch notes only the time
        self.thread = threading.get_ident()


_NAMES = ("_MapDatasetFetcher", "_IterableDatasetFetcher")
_worker: list[WorkerMarks] = []  # not empty in a worker that is recorded


def watched_fetchers(fetch: Any, recording: Callable[[], bool]) -> dict[str, type]:
    """Subclasses to stand in for the fetchers of torch's module `fetch` while `recording()`."""
    # A worker that is forked later finds its marks in the list; a profile inside a worker has none.
    worker = [] if _worker else _worker
    return {
        name: _watched(getattr(fetch, name), recording, worker)
        for name in _NAMES
        if hasattr(fetch, name)
    }


def worker_marks() -> WorkerMarks:
    """Those of this recorded worker."""
    if not _worker:
        _worker.append(WorkerMarks())
    return _worker[0]


def watched_in_worker(fetch: Any) -> dict[str, type]:
    """The same in a worker, which records from beginning to end. A forked one has its parent's
    subclasses, and goes on with them: making new ones takes half a millisecond."""
    worker_marks()
    return {
        name: _watched(getattr(fetch, name), lambda: False, _worker)
        for name in _NAMES
        if hasattr(fetch, name) and not hasattr(getattr(fetch, name), "_ioscope_base")
    }


def left_worker() -> None:
    """The worker's loop is over."""
    _worker.clear()


def _watched(base: Any, recording: Callable[[], bool], worker: Sequence[WorkerMarks]) -> type:
    base = getattr(base, "_ioscope_base", base)  # a profile inside a worker finds its parent's
    original_fetch = base.fetch
    marks, clock_ns, this_thread = MARKS, time.monotonic_ns, threading.get_ident

    class Watched(base):  # type: ignore[misc]
        _ioscope_base = base

        @property
        def collate_fn(self) -> Any:
            if worker:
                own = worker[0]
                if own.thread == this_thread():
                    own.collate_start_ns = clock_ns()
            elif recording():
                now_ns = marks.collate_start_ns = clock_ns()
                start = marks.start
                if start is not None and now_ns - start[0] >= LEAST_FETCH_NS:
                    asked = sys._getframe(1).f_locals
                    marks.indices = asked.get("possibly_batched_index")
            return self._ioscope_collate

        @collate_fn.setter
        def collate_fn(self, value: Any) -> None:
            self._ioscope_collate = value

        @property
        def fetch(self) -> Any:
            if worker:
                own = worker[0]
                if own.thread == this_thread():
                    own.collate_start_ns = 0
                    own.start = clock_ns() if own.light else usage()
            elif recording():
                marks.collate_start_ns = 0
                marks.indices = None
                marks.start = usage()
            return MethodType(original_fetch, self)

    Watched.__name__, Watched.__qualname__ = base.__name__, base.__qualname__
    Watched.__module__ = base.__module__
    return Watched
