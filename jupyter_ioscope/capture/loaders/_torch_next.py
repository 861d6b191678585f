"""`record_function`, inside which every `__next__` of torch's loaders runs: it marks the waits."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from typing import Any, Protocol

from jupyter_ioscope.capture.recorder import OpenEpoch, Recorder

# Kinds of iterators, by what is to be looked at when a batch comes: nothing, where recorded workers
# deliver in order. The others: no workers, batches out of order, workers that record nothing.
USUAL, ALONE, UNORDERED, SILENT = range(4)
Opened = tuple["weakref.ref[Any]", OpenEpoch, int]
# A name (kept, so that no other gets its id), its iterator, and the epoch of one of the usual kind.
Named = tuple[Any, "weakref.ref[Any]", OpenEpoch | None]


class Hooks(Protocol):
    """What is known of the iterators of one profile."""

    recorder: Recorder
    open: dict[int, Opened]  # by id(iterator)
    named: dict[int, Named]  # by id of the name that the iterator gives its waits

    @property
    def pending(self) -> Sequence[Any]:
        """Begun epochs whose iterator has not been seen yet."""

    def opened(self, iterator: Any) -> Opened | None: ...

    def next_ends(self, epoch: OpenEpoch, iterator: Any, caller: Any, tasks: Any) -> None: ...


def recorded_function(base: type, code: Any, hooks: Hooks) -> type:
    """`record_function` that also marks the wait when a loader's `__next__` enters it."""

    recorder, known_iterators, pending = hooks.recorder, hooks.open, hooks.pending
    named = hooks.named
    enter, leave = base.__enter__, base.__exit__  # type: ignore[attr-defined]
    frame_of, wait_begins, wait_ends = sys._getframe, recorder.wait_begins, recorder.wait_ends

    class RecordedFunction(base):  # type: ignore[misc]
        _ioscope: tuple[OpenEpoch, Any, int, Any] | None = None

        def __enter__(self) -> Any:
            known_name = named.get(id(self.name))
            if known_name is not None and not pending:
                _, iterator_of, epoch = known_name
                if epoch is not None and recorder.active:
                    try:
                        self._ioscope = epoch, iterator_of(), USUAL, None
                        wait_begins(epoch)
                    except Exception as error:
                        recorder.broke(error)
                    return enter(self)
            caller = frame_of(1)
            if caller.f_code is code and recorder.active:
                try:
                    iterator = caller.f_locals["self"]
                    known = known_iterators.get(id(iterator))
                    if known is None or pending or known[0]() is not iterator:
                        known = hooks.opened(iterator)
                    if known is not None:
                        _, epoch, kind = known
                        tasks = _tasks_waiting(iterator) if kind == UNORDERED else None
                        self._ioscope = epoch, iterator, kind, tasks
                        wait_begins(epoch)
                except Exception as error:
                    recorder.broke(error)
            return enter(self)

        def __exit__(self, kind: Any, value: Any, trace: Any) -> Any:
            marked = self._ioscope
            if marked is not None and recorder.active:
                self._ioscope = None
                epoch, iterator, of_kind, tasks = marked
                try:
                    if kind is None and of_kind == USUAL:
                        wait_ends(epoch, -1, -1, iterator._rcvd_idx - 1)
                    elif kind is None:
                        hooks.next_ends(epoch, iterator, frame_of(1), tasks)
                    elif issubclass(kind, StopIteration):
                        recorder.epoch_ends(epoch)
                except Exception as error:
                    recorder.broke(error)
            return leave(self, kind, value, trace)

    RecordedFunction.__name__ = base.__name__
    RecordedFunction.__qualname__ = base.__qualname__
    return RecordedFunction


def _tasks_waiting(iterator: Any) -> Any:
    """What `_task_returned` needs from before `next()` of a loader out of order."""
    return set(iterator._task_info), iterator._send_idx
