"""Inside a copy of the kernel: finds the recorded loader while its cell runs again, puts the
arm's loader in its place, and times what that one delivers."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from jupyter_ioscope.trials.build import build
from jupyter_ioscope.trials.counting import Beats, rows_of, samples_in, shut_down, worker_ids
from jupyter_ioscope.trials.spec import LoaderSpec, loaded_data, spec_of
from jupyter_ioscope.trials.tally import Plan, Tally
from jupyter_ioscope.trials.toggle import Toggle

# The toggles of an arm, each with what it learnt beforehand (None: it needs nothing).
Swap = tuple[tuple[Toggle, "dict[str, Any] | None"], ...]

_COUNTS = "_ioscope_counts"  # of an iterator: samples in each batch that it asked for


def swapped(spec: LoaderSpec, swap: Swap) -> LoaderSpec:
    """`spec` with toggles applied."""
    for toggle, learnt in swap:
        if learnt is None or toggle.apply_learnt is None:
            spec = toggle.apply(spec)
        else:
            spec = toggle.apply_learnt(spec, learnt)
    return spec


class CellLoop:
    """`number` counts loaders in the order in which the cell begins to iterate them. `enough` is
    called with the result as soon as the plan is fulfilled, in the middle of the cell."""

    def __init__(
        self, emit: Any, plan: Plan, number: int, swap: Swap, enough: Callable[[CellLoop], None]
    ) -> None:
        self._plan, self._number, self._swap = plan, number, swap
        self._enough, self._beats = enough, Beats(emit)
        self._met: dict[int, weakref.ref[Any]] = {}
        self._begun_loaders = 0
        self._first: Any = None
        self._made: dict[int, tuple[Any, LoaderSpec]] = {}
        self._foreign: list[Any] = []
        self.tally: Tally | None = None
        # Weak: an iterator that the cell drops ends its workers.
        self._open: weakref.ref[_Watched] | None = None

    def install(self) -> None:
        """From here on loaders of this process are watched; for good, so in a child only."""
        data = loaded_data()
        original = data.DataLoader.__iter__

        def begin(loader: Any) -> Any:
            self._let_go(loader)
            arm = self._arm_of(loader)
            return original(loader) if arm is None else self._begun(*arm, original)

        data.DataLoader.__iter__ = begin
        _leave_others_alone(data.dataloader)
        self._count_indices(data.dataloader._BaseDataLoaderIter)

    def _let_go(self, loader: Any) -> None:
        """Kept workers of the kernel's own loader are not ours to use, nor to end."""
        kept = getattr(loader, "_iterator", None)
        if kept is not None and _is_others(kept):
            self._foreign.append(kept)
            loader._iterator = None

    def _arm_of(self, loader: Any) -> tuple[Any, LoaderSpec] | None:
        """The loader to iterate instead of `loader`; None for one that stays."""
        known = self._made.get(id(loader))
        if known is not None and self._met[id(loader)]() is loader:
            return known
        if id(loader) not in self._met or self._met[id(loader)]() is not loader:
            self._met[id(loader)] = weakref.ref(loader)
            self._begun_loaders += 1
            if self._begun_loaders == self._number + 1 or self._is_like_first(loader):
                return self._make(loader)
        return None

    def _is_like_first(self, loader: Any) -> bool:
        """Made anew for every epoch, it is still the one that reads the same dataset alike."""
        return self._first is not None and _alike(loader) == self._first

    def _make(self, loader: Any) -> tuple[Any, LoaderSpec]:
        self._first = _alike(loader)
        spec = swapped(spec_of(loader), self._swap)
        for change in spec.in_child:
            change.install()
        made = self._made[id(loader)] = build(spec, own=False), spec
        return made

    def _begun(self, made: Any, spec: LoaderSpec, original: Callable[[Any], Any]) -> Any:
        if self.tally is None:
            self.tally = Tally(self._plan, spec.num_workers)
        if self._plan.mode == "epochs" and not self.tally.meter.running:
            self.tally.meter.start()
        if made._iterator is not None:  # kept workers, another epoch
            made._iterator.__dict__.pop(_COUNTS, None)
        inner = original(made)
        self._beats(self.tally.delivered, self.tally.delivered_samples, worker_ids(inner))
        watched = _Watched(self, inner, spec)
        self._open = weakref.ref(watched)
        return watched

    def _count_indices(self, base: Any) -> None:
        original = base._next_index

        def next_index(iterator: Any) -> Any:
            index = original(iterator)
            count = len(index) if isinstance(index, (list, tuple)) else 1
            iterator.__dict__.setdefault(_COUNTS, []).append(count)
            return index

        base._next_index = next_index

    def delivered(self, watched: _Watched, batch: Any) -> None:
        assert self.tally is not None
        tally = self.tally
        tally.arrived()
        number, count = watched.batches, watched.samples_in(batch)
        watched.batches, watched.samples = number + 1, watched.samples + count
        tally.delivered_samples += count
        self._beats(tally.delivered, tally.delivered_samples)
        if self._plan.mode == "epochs":
            tally.counted(count)
        elif tally.steady(number, count):
            tally.meter.stop()
            self._enough(self)

    def ended(self, watched: _Watched) -> None:
        """The loop over one iterator is over: it was exhausted, or left by `break`."""
        if self.tally is None or watched.over:
            return
        watched.over = True
        whole = self._plan.mode == "epochs"
        self.tally.meter.stop(time.monotonic_ns() if whole else 0)
        self.tally.epoch_batches.append(watched.batches)
        self.tally.epoch_samples.append(watched.samples)

    def workers(self) -> list[int]:
        """Process ids of the workers of the loop that is open."""
        watched = self._open() if self._open is not None else None
        return worker_ids(watched.inner) if watched is not None else []

    def close(self) -> None:
        """End what is still open, with its workers."""
        watched = self._open() if self._open is not None else None
        if watched is not None:
            self.ended(watched)
            shut_down(watched.inner, own_process=True)


class _Watched(Iterator[Any]):
    """An iterator of the arm's loader, as the cell sees it."""

    def __init__(self, loop: CellLoop, inner: Any, spec: LoaderSpec) -> None:
        self.loop, self.inner, self.spec = loop, inner, spec
        self.batches = self.samples = 0
        self.over = False

    def __next__(self) -> Any:
        try:
            batch = next(self.inner)
        except StopIteration:
            self.loop.ended(self)
            raise
        self.loop.delivered(self, batch)
        return batch

    def __del__(self) -> None:
        # The loop was left by `break`. Its workers end first, unless the loader keeps them.
        self.inner = None
        self.loop.ended(self)

    def __len__(self) -> int:
        return len(self.inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def samples_in(self, batch: Any) -> int:
        if self.spec.rows_in_batch:
            return rows_of(batch)
        counts = self.inner.__dict__.get(_COUNTS, ())
        if self.spec.iterable or self.batches >= len(counts):
            return samples_in(batch, self.spec.batch_size)
        return int(counts[self.batches])


def _alike(loader: Any) -> tuple[Any, ...]:
    return type(loader), loader.batch_size, loader.num_workers, id(loader.dataset)


def _is_others(iterator: Any) -> bool:
    """Whether an iterator's workers were started by the process that this one is a copy of."""
    workers = getattr(iterator, "_workers", None) or ()
    return any(worker._parent_pid != os.getpid() for worker in workers)


def _leave_others_alone(dataloader: Any) -> None:
    """Workers of the kernel's own iterators must not be ended, nor their batches taken, from
    here."""
    kind = dataloader._MultiProcessingDataLoaderIter
    end, draw = kind._shutdown_workers, kind._next_data

    def shutdown_workers(iterator: Any) -> None:
        if not _is_others(iterator):
            end(iterator)

    def next_data(iterator: Any) -> Any:
        if _is_others(iterator):
            raise RuntimeError("the cell draws from an iterator that was begun in another cell")
        return draw(iterator)

    kind._shutdown_workers, kind._next_data = shutdown_workers, next_data
