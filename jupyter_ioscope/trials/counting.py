"""Draws batches from a loader inside a trial's process and knows how many samples each holds."""

from __future__ import annotations

import contextlib
import functools
import random
import signal
import time
from collections.abc import Iterator
from typing import Any

from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials.spec import LoaderSpec, loaded_data

_BEAT_S = 0.25


def seed_all(seed: int) -> None:
    """The same start for random, numpy (when loaded) and torch: both arms see one order."""
    random.seed(seed)
    numpy = loaded("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)
    loaded_data()
    import torch

    torch.manual_seed(seed)


class Indices:
    """The indices behind each batch, noted as the loader draws them from its sampler.

    `ids[k]` belongs to the k-th batch drawn in an epoch, which is the k-th delivered while
    `in_order` holds; empty for iterable datasets, which have none.
    """

    def __init__(self, spec: LoaderSpec, reseed: int | None = None) -> None:
        self._spec = spec
        self._reseed = reseed  # seeds once more as soon as the order has been drawn
        self.ids: list[list[Any]] = []
        # Whether a row for each of several indices is asked for at once.
        self.lists = False

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """While this holds, loaders of this process note their indices here."""
        base = loaded_data().dataloader._BaseDataLoaderIter
        original = base._next_index

        @functools.wraps(original)
        def next_index(iterator: Any) -> Any:
            index = original(iterator)
            if self._reseed is not None:
                seed_all(self._reseed)
                self._reseed = None
            self.lists = type(index) is list
            self.ids.append(list(index) if isinstance(index, (list, tuple)) else [index])
            return index

        base._next_index = next_index
        try:
            yield
        finally:
            base._next_index = original

    def samples(self, number: int, batch: Any) -> int:
        """Samples in the batch delivered as `number` (from 0) of the current epoch."""
        if self._spec.rows_in_batch:
            return rows_of(batch)
        if self._spec.iterable:
            return samples_in(batch, self._spec.batch_size)
        return len(self.ids[number]) if number < len(self.ids) else self._spec.batch_size or 1


def rows_of(batch: Any) -> int:
    """Rows of a batch of columns: a table, a dict of columns, or one column."""
    if hasattr(batch, "num_rows"):
        return int(batch.num_rows)
    column = next(iter(batch.values()), ()) if isinstance(batch, dict) else batch
    try:
        return len(column)
    except TypeError:
        return 1


def samples_in(batch: Any, batch_size: int | None) -> int:
    """How many samples a batch of an iterable dataset holds: the length of its first tensor or
    list, when that fits the batch size (only the last batch of a worker is shorter)."""
    if batch_size is None:
        return 1
    item = batch
    while isinstance(item, (dict, list, tuple)) and item:
        first = next(iter(item.values())) if isinstance(item, dict) else item[0]
        if isinstance(item, list) and not hasattr(first, "shape"):
            break
        item = first
    with contextlib.suppress(TypeError, IndexError):
        length = int(item.shape[0]) if hasattr(item, "shape") else len(item)
        if 0 < length <= batch_size:
            return length
    return batch_size


class Beats:
    """Reports progress at most four times a second."""

    def __init__(self, emit: Any) -> None:
        self._emit = emit
        self._last = 0.0

    def __call__(self, batches: int, samples: int, workers: Any = None) -> None:
        now = time.monotonic()
        if workers is None and now - self._last < _BEAT_S:
            return
        self._last = now
        message = {"kind": "beat", "batches": batches, "samples": samples}
        if workers:
            message["workers"] = workers
        self._emit(message)


def shut_down(iterator: Any, own_process: bool) -> None:
    """End an iterator's workers now: one that ends leaves nothing in shared memory, a killed one
    may. All batches wanted are there, so what befalls a worker from here on is no failure."""
    if own_process:
        # torch's handler would raise wherever the program is when a worker ends badly.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with contextlib.suppress(Exception):
        iterator._shutdown_workers()


def worker_ids(iterator: Any) -> list[int]:
    """Process ids of an iterator's workers."""
    return [w.pid for w in getattr(iterator, "_workers", None) or () if w.pid is not None]
