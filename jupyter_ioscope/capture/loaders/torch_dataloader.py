"""Records `torch.utils.data.DataLoader` without putting a frame of ours on the user's stack.

A wrapper around `__next__`, `fetch` or a collate function would show up in the user's tracebacks
and flame graphs. So the hooks sit beside the calls, where torch itself touches something:

- `DataLoader.__iter__` becomes a descriptor: looking the method up notes the start of an epoch;
- `__next__` runs inside `torch.autograd.profiler.record_function`: entering and leaving it marks
  the wait;
- a fetcher's `fetch` and `collate_fn` are read at the moments of interest: properties of a
  subclass note the time and return what torch put there;
- in a worker, the data queue marks the end of a fetch, the index queue names its task.
"""

from __future__ import annotations

import importlib
import sys
import time
import weakref
from typing import Any

from jupyter_ioscope.capture.batch_digest import DigestOfMapBatch
from jupyter_ioscope.capture.loaders import _torch_stateful as stateful
from jupyter_ioscope.capture.loaders._loader import WorkerSettings
from jupyter_ioscope.capture.loaders._prepared import Around, around
from jupyter_ioscope.capture.loaders._torch_describe import describe, describe_iterator, snapshot
from jupyter_ioscope.capture.loaders._torch_fetch import MARKS, watched_fetchers
from jupyter_ioscope.capture.loaders._torch_next import (
    ALONE,
    SILENT,
    UNORDERED,
    USUAL,
    Named,
    Opened,
    recorded_function,
)
from jupyter_ioscope.capture.loaders._torch_worker import RecordedWorkerLoop, samples_in
from jupyter_ioscope.capture.patching import Patches
from jupyter_ioscope.capture.recorder import OpenEpoch, Recorder
from jupyter_ioscope.capture.records import SizeOfBatch, Usage, fetch_between, usage
from jupyter_ioscope.capture.sample_checksums import SampleChecksums
from jupyter_ioscope.model.profile import Gap

_MOST_OPEN = 16  # epochs that are open at a time, and remembered


class _IterHook:
    """Descriptor in place of `DataLoader.__iter__`: the look-up is the signal."""

    def __init__(self, original: Any, hooks: _Hooks) -> None:
        self._original = original
        self._hooks = hooks

    def __get__(self, loader: Any, owner: Any = None) -> Any:
        if loader is None:
            return self._original
        hooks = self._hooks
        if hooks.recorder.recording_here():
            try:
                hooks.iter_begins(loader, around(loader, sys._getframe(1)))
            except Exception as error:
                hooks.recorder.broke(error)
        return self._original.__get__(loader, owner)


class _Hooks:
    """The state shared by all hooks of one profile."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.worker_loops: list[RecordedWorkerLoop] = []
        # Begun epochs whose iterator has not been seen yet, with what the iterator will share with
        # its loader. Not the loader itself: `for batch in DataLoader(...)` drops it at once.
        self.pending: list[tuple[OpenEpoch, _Shared]] = []
        # By id(iterator). Weak, because an iterator ends its workers when the user drops it, and
        # because forked workers must not inherit one that is already done.
        self.open: dict[int, Opened] = {}
        self.named: dict[int, Named] = {}  # by id of the name that the iterator gives its waits
        self.sizes: dict[int, SizeOfBatch] = {}  # by loader
        self.digests: dict[int, DigestOfMapBatch] = {}  # by epoch
        self.again: dict[int, SampleChecksums] = {}  # by epoch

    def iter_begins(self, loader: Any, outside: Around | None = None) -> None:
        now_ns = time.monotonic_ns()
        number = self.recorder.loader_number(
            loader,
            lambda n: describe(loader, n, outside),
            lambda own: outside.snapshot(snapshot(own)) if outside else snapshot(own),
        )
        resets = 0
        iterator = getattr(loader, "_iterator", None)
        if loader.persistent_workers and iterator is not None:
            known = self._open_epoch(iterator)
            resets = known.resets + 1 if known else 0
        epoch = self.recorder.open_epoch(number, now_ns, resets)
        for loop in self.worker_loops:
            loop.loader, loop.epoch = number, epoch.epoch
        self.pending.append((epoch, _shared(loader)))
        del self.pending[:-16]

    def opened(self, iterator: Any) -> Opened | None:
        """What is known of an iterator. None in a forked child, which iterates its own loaders."""
        if not self.recorder.recording_here():
            return None
        self.epoch_of(iterator)
        return self.open[id(iterator)]

    def epoch_of(self, iterator: Any) -> OpenEpoch:
        """The epoch of an iterator: just begun, already open, or begun before the profile."""
        for position in range(len(self.pending) - 1, -1, -1):
            epoch, shared = self.pending[position]
            if _belongs(iterator, shared):
                del self.pending[position]
                self._adopt(iterator, epoch)
                return epoch
        return self._open_epoch(iterator) or self._begun_before(iterator)

    def _open_epoch(self, iterator: Any) -> OpenEpoch | None:
        known = self.open.get(id(iterator))
        return known[1] if known is not None and known[0]() is iterator else None

    def _adopt(self, iterator: Any, epoch: OpenEpoch) -> None:
        kind = self._kind(iterator, epoch)
        self.open[id(iterator)] = weakref.ref(iterator), epoch, kind
        self._learn_name(iterator, epoch, kind)
        for worker, process in enumerate(getattr(iterator, "_workers", ())):
            if process.pid is not None:
                self.recorder.worker_pids[process.pid] = worker

    def _learn_name(self, iterator: Any, epoch: OpenEpoch, kind: int) -> None:
        """torch makes a new string for each iterator, by which its waits are known without a look
        at a frame. One that two iterators share says nothing."""
        name = getattr(iterator, "_profile_name", None)
        if name is None:
            return
        other = self.named.get(id(name))
        shared = other is not None and other[1]() is not iterator
        usual = kind == USUAL and not shared
        self.named[id(name)] = name, weakref.ref(iterator), epoch if usual else None

    def _kind(self, iterator: Any, epoch: OpenEpoch) -> int:
        if not iterator._num_workers:
            return ALONE
        if not getattr(iterator, "_in_order", True):
            return UNORDERED
        # Workers count their samples themselves; only silent ones need a look at the batch.
        silent = self.recorder.loaders[epoch.loader].workers_before_profile
        return SILENT if silent else USUAL

    def _begun_before(self, iterator: Any) -> OpenEpoch:
        now_ns = time.monotonic_ns()
        number = self.recorder.loader_number(iterator, lambda n: describe_iterator(iterator, n))
        epoch = self.recorder.open_epoch(number, now_ns)
        self._adopt(iterator, epoch)
        return epoch

    def next_ends(self, epoch: OpenEpoch, iterator: Any, caller: Any, tasks_before: Any) -> None:
        samples = -1
        if iterator._num_workers == 0:
            taken, end, task = MARKS.take(), usage(), epoch.tasks
            data = caller.f_locals.get("data")
            samples = _samples_of(iterator, data)
            if taken is not None:
                self._own_fetch(epoch, samples, data, taken, end)
                self._note_samples(epoch, data, end[0] - taken[0][0])
        else:
            task = _task_returned(iterator, tasks_before)
            if self.recorder.loaders[epoch.loader].workers_before_profile:
                samples = _samples_of(iterator, caller.f_locals.get("data"))
        self.recorder.wait_ends(epoch, samples, -1, task)

    def _note_samples(self, epoch: OpenEpoch, data: Any, fetch_ns: int) -> None:
        """Checksums of some samples, by the indices that the sampler gave for the batch."""
        indices, MARKS.indices = MARKS.indices, None
        if indices is None:
            return
        again = self.again.get(epoch.epoch)
        if again is None:
            if len(self.again) >= _MOST_OPEN:
                self.again.clear()
            again = self.again[epoch.epoch] = SampleChecksums()
        notes = again(indices, data, fetch_ns)
        self.recorder.sample_notes += ((epoch.loader, note) for note in notes)

    def _own_fetch(
        self, epoch: OpenEpoch, samples: int, data: Any, taken: tuple[Usage, int], end: Usage
    ) -> None:
        """With no workers the consumer fetched for itself: record that as a fetch."""
        start, collate_start_ns = taken
        digest_of = self.digests.get(epoch.epoch)
        if digest_of is None:
            if len(self.digests) >= _MOST_OPEN:
                self.digests.clear()
            digest_of = self.digests[epoch.epoch] = DigestOfMapBatch()
        self.recorder.fetches.append(
            fetch_between(
                start,
                end,
                collate_start_ns,
                worker=-1,
                pid=self.recorder.pid,
                loader=epoch.loader,
                epoch=epoch.epoch,
                task=epoch.tasks,
                samples=samples,
                size=self.sizes.setdefault(epoch.loader, SizeOfBatch())(data),
                digest=digest_of(data, end[0] - start[0]),
            )
        )


_Shared = tuple[Any, Any, int]


def _shared(loader: Any) -> _Shared:
    return loader.collate_fn, loader._index_sampler, loader.num_workers


def _belongs(iterator: Any, shared: _Shared) -> bool:
    collate_fn, index_sampler, num_workers = shared
    return bool(
        iterator._collate_fn is collate_fn
        and iterator._index_sampler is index_sampler
        and iterator._num_workers == num_workers
    )


def _task_returned(iterator: Any, before: Any) -> int:
    """Number of the task whose batch `next()` just returned, -1 if it cannot be told."""
    if before is None:
        return int(iterator._rcvd_idx) - 1
    waiting, sent = before
    gone = (waiting | set(range(sent, iterator._send_idx))) - set(iterator._task_info)
    return gone.pop() if len(gone) == 1 else -1


def _samples_of(iterator: Any, data: Any) -> int:
    """Samples of a batch, from its own shape; never more than the loader's batch size."""
    if not getattr(iterator, "_auto_collation", True):
        return 1
    limit = getattr(iterator._index_sampler, "batch_size", None)
    if not isinstance(limit, int):
        return samples_in(data, -1)
    return min(limit, samples_in(data, limit))


class TorchDataLoader:
    """The plug-in."""

    name = "torch"
    package = "torch"

    def install(self, recorder: Recorder, patches: Patches, settings: WorkerSettings) -> None:
        dataloader: Any = importlib.import_module("torch.utils.data.dataloader")
        fetch: Any = importlib.import_module("torch.utils.data._utils.fetch")
        worker: Any = importlib.import_module("torch.utils.data._utils.worker")
        profiler: Any = importlib.import_module("torch.autograd.profiler")
        hooks = _Hooks(recorder)
        code = dataloader._BaseDataLoaderIter.__next__.__code__
        if "record_function" not in code.co_names:
            recorder.gaps.append(
                Gap("batches", "this version of torch does not mark its loaders' next()")
            )
            return
        patches.set(
            profiler, "record_function", recorded_function(profiler.record_function, code, hooks)
        )
        for name, subclass in watched_fetchers(fetch, recorder.recording_here).items():
            patches.set(fetch, name, subclass)
        kinds = [(dataloader.DataLoader, worker)]
        if (own := stateful.module()) is not None:
            kinds.append((own.StatefulDataLoader, own))
        for loader, home in kinds:
            loop = RecordedWorkerLoop(settings, home._worker_loop, fetch)
            hooks.worker_loops.append(loop)
            patches.set(home, "_worker_loop", loop)
            patches.set(loader, "__iter__", _IterHook(loader.__iter__, hooks))


LOADER = TorchDataLoader()
