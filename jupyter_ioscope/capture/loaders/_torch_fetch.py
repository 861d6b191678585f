"""torch's fetchers, with properties that note when their attributes are read.

`fetch` is read when a fetch begins and `collate_fn` when the items are there and are about to be
joined. Each property returns exactly what torch put there, and leaves no frame behind.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import MethodType
from typing import Any

from jupyter_ioscope.capture.records import Usage, usage


class Marks(threading.local):
    """What the running fetch of this thread has noted: its start, and when its collate began."""

    start: Usage | int | None = None  # of a fetch that notes only the time: that time
    collate_start_ns: int = 0
    light: bool = False  # whether the next fetch notes only the time

    def take(self) -> tuple[Usage, int] | None:
        """(start, collate start or 0) of the last fetch, once; None if there was none."""
        start = self.start
        if not isinstance(start, tuple):
            return None
        self.start = None
        return start, self.collate_start_ns


MARKS = Marks()

_NAMES = ("_MapDatasetFetcher", "_IterableDatasetFetcher")
_worker: list[bool] = []  # not empty in a worker that is recorded


def watched_fetchers(fetch: Any, recording: Callable[[], bool]) -> dict[str, type]:
    """Subclasses to stand in for the fetchers of torch's module `fetch` while `recording()`."""
    return {
        name: _watched(getattr(fetch, name), recording) for name in _NAMES if hasattr(fetch, name)
    }


def watched_in_worker(fetch: Any) -> dict[str, type]:
    """The same in a worker, which records from beginning to end. A forked one has its parent's
    subclasses, and goes on with them: making new ones takes half a millisecond."""
    _worker.append(True)
    return {
        name: _watched(getattr(fetch, name), lambda: False)
        for name in _NAMES
        if hasattr(fetch, name) and not hasattr(getattr(fetch, name), "_ioscope_base")
    }


def left_worker() -> None:
    """The worker's loop is over."""
    _worker.clear()


def _watched(base: Any, recording: Callable[[], bool]) -> type:
    base = getattr(base, "_ioscope_base", base)  # a profile inside a worker finds its parent's
    original_fetch = base.fetch
    marks, clock_ns, in_worker = MARKS, time.monotonic_ns, _worker

    class Watched(base):  # type: ignore[misc]
        _ioscope_base = base

        @property
        def collate_fn(self) -> Any:
            if in_worker or recording():
                marks.collate_start_ns = clock_ns()
            return self._ioscope_collate

        @collate_fn.setter
        def collate_fn(self, value: Any) -> None:
            self._ioscope_collate = value

        @property
        def fetch(self) -> Any:
            if in_worker or recording():
                marks.collate_start_ns = 0
                marks.start = clock_ns() if marks.light else usage()
            return MethodType(original_fetch, self)

    Watched.__name__, Watched.__qualname__ = base.__name__, base.__qualname__
    Watched.__module__ = base.__module__
    return Watched
