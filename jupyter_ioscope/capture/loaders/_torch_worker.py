"""What runs in a worker process: torch's own loop between two queues that note the time."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from jupyter_ioscope.capture.batch_digest import DigestOfBatch, DigestOfMapBatch
from jupyter_ioscope.capture.loaders import _torch_stateful as stateful
from jupyter_ioscope.capture.loaders._loader import WorkerSettings
from jupyter_ioscope.capture.loaders._torch_fetch import (
    left_worker,
    watched_in_worker,
    worker_marks,
)
from jupyter_ioscope.capture.observers._observer import InWorker, start_in_worker
from jupyter_ioscope.capture.observers.samples_again import keep_notes
from jupyter_ioscope.capture.patching import Patches
from jupyter_ioscope.capture.records import BatchSize, SizeOfBatch, Usage, WorkerLog, usage
from jupyter_ioscope.capture.rights import YAMA_ASKS, allow_tracer, yama_level
from jupyter_ioscope.capture.sample_checksums import Note, SampleChecksums

# Reading a thread's CPU time and faults takes two system calls. Fetches that are this short come in
# their thousands: of eight that follow each other one is read in full.
_SHORT_NS = 250_000
_SHORT_LIGHT = 7
_NO_SIZE = BatchSize(0, 0)
_clock_ns, _thread_ns = time.monotonic_ns, time.thread_time_ns

_TORCH = "torch.utils.data._utils.worker"


class RecordedWorkerLoop:
    """Stands in for a `_worker_loop`. Travels to the worker by fork or by pickle.

    `loader` and `epoch` are set by the consumer's hook just before workers are created. Children
    that the cell forks carry it on: workers of their loaders are no part of this profile.
    """

    def __init__(self, settings: WorkerSettings, original: Any = None, fetch: Any = None) -> None:
        self.settings = _without_needless_leave(settings)
        self.loader = 0
        self.epoch = 0
        self.created_ns = -1
        self._pid = os.getpid()
        self._home = str(getattr(original, "__module__", _TORCH))
        self._original = original
        # Asked before the worker is forked: it takes a quarter of a millisecond, imports a tenth.
        self._fetch = fetch
        self._names = parameters(original) if original is not None else ()

    def __reduce__(self) -> tuple[Any, ...]:
        if os.getpid() != self._pid:
            return _own_loop, (self._home,)
        created_ns = time.monotonic_ns()
        return _rebuild, (self.settings, self.loader, self.epoch, created_ns, self._home)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        original = self._original
        if original is None:  # spawned: this process has the loop itself in place
            from torch.utils.data._utils import fetch

            original, self._fetch = _own_loop(self._home), fetch
            self._names = parameters(original)
        elif os.getppid() != self._pid:
            return original(*args, **keywords)
        with contextlib.ExitStack() as stack:
            try:
                args, keywords = self._recorded(original, args, keywords, stack)
            except Exception:  # nothing of ours may fail the user's worker
                stack.close()
            return original(*args, **keywords)

    def _recorded(
        self, original: Any, args: Any, keywords: Any, stack: contextlib.ExitStack
    ) -> tuple[tuple[()], dict[str, Any]]:
        given = {**dict(zip(self._names, args, strict=False)), **keywords}
        worker = int(given["worker_id"])
        settings = self.settings
        log = WorkerLog(settings.session_dir, worker, self.loader, self.epoch, self.created_ns)
        stack.callback(log.close)
        kind = _StatefulTasks if "worker_state" in given else _Tasks
        keep = partial(keep_notes, settings.session_dir, self.loader)
        tasks = kind(log, iterable=given.get("dataset_kind") == 1, keep=keep)
        given["index_queue"] = _IndexQueue(given["index_queue"], tasks)
        given["data_queue"] = _DataQueue(given["data_queue"], tasks)
        patches = Patches()
        stack.callback(patches.undo)
        stack.callback(left_worker)
        for name, subclass in watched_in_worker(self._fetch).items():
            patches.set(self._fetch, name, subclass)
        _let_be_seen(settings, stack)
        start_in_worker(InWorker(settings.session_dir, worker, settings.stacks), stack)
        return (), given


def parameters(function: Any) -> tuple[str, ...]:
    """Names of a function's parameters, in order."""
    return tuple(inspect.signature(function).parameters)


def _own_loop(home: str) -> Any:
    """The loop itself, in a process that has it in place."""
    return importlib.import_module(home)._worker_loop


def _rebuild(
    settings: WorkerSettings, loader: int, epoch: int, created_ns: int, home: str
) -> RecordedWorkerLoop:
    loop = RecordedWorkerLoop(settings)
    loop.loader, loop.epoch, loop.created_ns, loop._home = loader, epoch, created_ns, home
    return loop


def _without_needless_leave(settings: WorkerSettings) -> WorkerSettings:
    """Where Yama does not ask for it, no worker spends a quarter of a millisecond on allowing the
    helper to attach."""
    needless = settings.helper_pid and yama_level() != YAMA_ASKS
    return replace(settings, helper_pid=0) if needless else settings


def _let_be_seen(settings: WorkerSettings, stack: contextlib.ExitStack) -> None:
    """Allow the helper to attach; sample our own stacks where nobody may."""
    if settings.helper_pid:
        allow_tracer(settings.helper_pid)
    if settings.inprocess_stacks_hz > 0:
        from jupyter_ioscope.capture.stacks import InProcessStacks

        path = os.path.join(settings.session_dir, f"stacks-{os.getpid()}.json")
        stacks = InProcessStacks(path, settings.inprocess_stacks_hz)
        stacks.start()
        stack.callback(stacks.stop)


class _Tasks:
    """Turns what the queues and the fetcher noticed into records."""

    __slots__ = (
        "_again",
        "_digest_of",
        "_digest_of_map",
        "_iterable",
        "_keep",
        "_last",
        "_left",
        "_log",
        "_marks",
        "_resumed",
        "_size_of",
        "came",
    )

    def __init__(self, log: WorkerLog, iterable: bool, keep: Callable[[list[Note]], None]) -> None:
        self.came: Any = None  # the newest message: the task of the fetch that follows
        self._log, self._marks = log, worker_marks()
        self._iterable = iterable
        self._resumed = 0
        self._last = usage()
        self._left = 0
        self._size_of = SizeOfBatch()
        self._digest_of = DigestOfBatch()
        self._digest_of_map = DigestOfMapBatch()
        self._again, self._keep = SampleChecksums(), keep

    def goes(self, item: Any) -> None:
        """A task's number and its batch go to the consumer."""
        message, self.came = self.came, None
        marks = self._marks
        start = marks.start
        if start is None:
            if message is not None and type(message) is not tuple:
                self._begins_again()
            return
        marks.start = None
        task, index = message
        samples = len(index) if isinstance(index, (list, tuple)) else 1
        if isinstance(start, int):
            end_ns = _clock_ns()
            if end_ns - start < _SHORT_NS:
                self._log.short_fetch(start, end_ns, marks.collate_start_ns, task, samples)
                self._digest_of_map.seen += 1
                self._left -= 1
                if not self._left:
                    marks.light = False
                return
            start = self._since_full(start)
        self._last = end = usage()
        short = end[0] - start[0] < _SHORT_NS and not self._iterable
        marks.light, self._left = short, _SHORT_LIGHT
        self._whole(item[1], start, end, samples, task)
        if not self._iterable:
            notes = self._again(index, item[1], end[0] - start[0])
            if notes:
                self._keep(notes)

    def _since_full(self, start_ns: int) -> Usage:
        """The beginning of a fetch that turned out not to be short. It gets what was used since the
        last full reading, by at most seven short fetches as well, but no more CPU than time."""
        _, cpu_ns, used = self._last
        return start_ns, max(cpu_ns, _thread_ns() - (_clock_ns() - start_ns)), used

    def _whole(self, data: Any, start: Usage, end: Usage, samples: int, task: int) -> None:
        kind = type(data).__name__
        if kind == "_IterableDatasetStopIteration":
            return
        size, digest = _NO_SIZE, 0
        if kind != "ExceptionWrapper":
            size = self._size_of(data)
            if not self._iterable:
                digest = self._digest_of_map(data, end[0] - start[0])
        if self._iterable:  # the last batch of a stream can be short
            samples = min(samples, samples_in(data, samples))
            digest = self._digest_of(data)
        collate_start_ns = self._marks.collate_start_ns
        self._log.fetch(start, end, collate_start_ns, task, self._resumed, samples, size, digest)

    def _begins_again(self) -> None:
        """A persistent worker begins a new epoch."""
        self._resumed += 1
        self._marks.light = False  # a short fetch is of the same epoch as the whole one before it
        self._digest_of.restart()
        self._digest_of_map.restart()
        self._again.restart()


class _StatefulTasks(_Tasks):
    """The same for the workers of torchdata's loader."""

    __slots__ = ()

    def goes(self, item: Any) -> None:
        self.came = stateful.task_of(self.came)
        super().goes(stateful.batch_of(item))


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


# Arguments are named as in `multiprocessing.Queue`: passing any on costs more than all the rest.
class _IndexQueue(_Queue):
    def __init__(self, queue: Any, tasks: _Tasks) -> None:
        super().__init__(queue, tasks)
        self._get = queue.get

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        message = self._get(timeout=timeout) if block else self._get(block, timeout)
        self._tasks.came = message
        return message


class _DataQueue(_Queue):
    def __init__(self, queue: Any, tasks: _Tasks) -> None:
        super().__init__(queue, tasks)
        self._put = queue.put
        self._goes = tasks.goes

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> Any:
        try:  # noqa: SIM105 - suppress() costs more than all of `goes`
            self._goes(item)
        except Exception:
            pass
        return self._put(item) if block and timeout is None else self._put(item, block, timeout)
