"""What runs in a worker process: torch's own loop between two queues that note the time."""

from __future__ import annotations

import contextlib
import inspect
import os
import time
from typing import Any

from jupyter_ioscope.capture.batch_digest import DigestOfBatch, DigestOfMapBatch
from jupyter_ioscope.capture.loaders._loader import WorkerSettings
from jupyter_ioscope.capture.loaders._torch_fetch import MARKS, watched_fetchers
from jupyter_ioscope.capture.patching import Patches
from jupyter_ioscope.capture.records import SizeOfBatch, WorkerLog, usage


class RecordedWorkerLoop:
    """Stands in for `_worker_loop`. Travels to the worker by fork or by pickle.

    `loader` and `epoch` are set by the consumer's hook just before workers are created.
    """

    def __init__(self, settings: WorkerSettings, original: Any = None) -> None:
        self.settings = settings
        self.loader = 0
        self.epoch = 0
        self.created_ns = -1
        self._original = original

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.settings, self.loader, self.epoch, time.monotonic_ns())

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        original = self._original
        if original is None:  # spawned: this process has torch's own loop in place
            from torch.utils.data._utils import worker

            original = worker._worker_loop
        with contextlib.ExitStack() as stack:
            try:
                args, keywords = self._recorded(original, args, keywords, stack)
            except Exception:  # nothing of ours may fail the user's worker
                stack.close()
            return original(*args, **keywords)

    def _recorded(
        self, original: Any, args: Any, keywords: Any, stack: contextlib.ExitStack
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        from torch.utils.data._utils import fetch

        from jupyter_ioscope.capture.observers._observer import InWorker, start_in_worker

        bound = inspect.signature(original).bind(*args, **keywords)
        worker = int(bound.arguments["worker_id"])
        settings = self.settings
        log = WorkerLog(settings.session_dir, worker, self.loader, self.epoch, self.created_ns)
        stack.callback(log.close)
        tasks = _Tasks(log, iterable=bound.arguments.get("dataset_kind") == 1)
        bound.arguments["index_queue"] = _IndexQueue(bound.arguments["index_queue"], tasks)
        bound.arguments["data_queue"] = _DataQueue(bound.arguments["data_queue"], tasks)
        patches = Patches()
        stack.callback(patches.undo)
        for name, subclass in watched_fetchers(fetch, lambda: True).items():
            patches.set(fetch, name, subclass)
        _let_be_seen(settings, stack)
        start_in_worker(InWorker(settings.session_dir, worker, settings.stacks), stack)
        return bound.args, bound.kwargs


def _rebuild(
    settings: WorkerSettings, loader: int, epoch: int, created_ns: int
) -> RecordedWorkerLoop:
    loop = RecordedWorkerLoop(settings)
    loop.loader, loop.epoch, loop.created_ns = loader, epoch, created_ns
    return loop


def _let_be_seen(settings: WorkerSettings, stack: contextlib.ExitStack) -> None:
    """Allow the helper to attach; sample our own stacks where nobody may."""
    if settings.helper_pid:
        from jupyter_ioscope.capture.rights import allow_tracer

        allow_tracer(settings.helper_pid)
    if settings.inprocess_stacks_hz > 0:
        from jupyter_ioscope.capture.stacks import InProcessStacks

        path = os.path.join(settings.session_dir, f"stacks-{os.getpid()}.json")
        stacks = InProcessStacks(path, settings.inprocess_stacks_hz)
        stacks.start()
        stack.callback(stacks.stop)


class _Tasks:
    """Turns what the queues and the fetcher noticed into records."""

    def __init__(self, log: WorkerLog, iterable: bool) -> None:
        self._log = log
        self._iterable = iterable
        self._resumed = 0
        self._task = -1
        self._samples = -1
        self._size_of = SizeOfBatch()
        self._digest_of = DigestOfBatch()
        self._digest_of_map = DigestOfMapBatch()

    def task_came(self, message: Any) -> None:
        if isinstance(message, tuple) and len(message) == 2:
            self._task, index = message
            self._samples = len(index) if isinstance(index, (list, tuple)) else 1
        elif message is not None:
            self._resumed += 1  # a persistent worker begins a new epoch
            self._digest_of.restart()
            self._digest_of_map.restart()

    def batch_goes(self, data: Any) -> None:
        taken = MARKS.take()
        if taken is None:
            return
        start, collate_start_ns = taken
        end = usage()
        kind = type(data).__name__
        if kind == "_IterableDatasetStopIteration":
            return
        size = (0, 0) if kind == "ExceptionWrapper" else self._size_of(data)
        samples, digest = self._samples, 0
        if self._iterable:  # the last batch of a stream can be short
            samples = min(samples, samples_in(data, samples))
            digest = self._digest_of(data)
        elif kind != "ExceptionWrapper":
            digest = self._digest_of_map(data, end.time_ns - start.time_ns)
        self._log.fetch(
            start, end, collate_start_ns, self._task, self._resumed, samples, size, digest
        )


def samples_in(data: Any, expected: int) -> int:
    """Samples of a batch by the length of its first leaf; `expected` where that says nothing."""
    for _ in range(4):
        if isinstance(data, dict):
            data = next(iter(data.values()), None)
        elif isinstance(data, (list, tuple)) and data and hasattr(data[0], "shape"):
            if len(data[0].shape) == 0:
                return len(data)
            data = data[0]
        else:
            break
    shape = getattr(data, "shape", None)
    if shape is not None and len(shape):
        return int(shape[0])
    return len(data) if isinstance(data, (list, tuple)) else expected


class _Queue:
    """Passes everything on to a queue."""

    def __init__(self, queue: Any, tasks: _Tasks) -> None:
        self._queue = queue
        self._tasks = tasks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


class _IndexQueue(_Queue):
    def get(self, *args: Any, **keywords: Any) -> Any:
        message = self._queue.get(*args, **keywords)
        try:  # noqa: SIM105 - suppress() costs more than all of task_came
            self._tasks.task_came(message)
        except Exception:
            pass
        return message


class _DataQueue(_Queue):
    def put(self, item: Any, *args: Any, **keywords: Any) -> Any:
        try:  # noqa: SIM105 - as above
            self._tasks.batch_goes(item[1])
        except Exception:
            pass
        return self._queue.put(item, *args, **keywords)
