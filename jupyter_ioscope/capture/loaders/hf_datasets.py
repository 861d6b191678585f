"""Records loops that iterate a Hugging Face dataset directly, without a DataLoader.

The iterator the user gets is built from C-level pieces (`map` over marks and the real iterator),
so that no frame of ours appears in a traceback. Rows come every few microseconds: after the first
ones, rows that take little time are recorded in groups, which keeps the cost of a record below
one per cent of the time it covers.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from jupyter_ioscope import optional
from jupyter_ioscope.capture.loaders._hf_facts import facts_of
from jupyter_ioscope.capture.loaders._hf_transforms import log_of
from jupyter_ioscope.capture.loaders._loader import WorkerSettings
from jupyter_ioscope.capture.patching import Patches
from jupyter_ioscope.capture.recorder import OpenEpoch, Recorder
from jupyter_ioscope.capture.records import SizeOfBatch, Usage, fetch_between, usage
from jupyter_ioscope.model.records import LoaderInfo

_SINGLY = 200  # so many rows are recorded one by one before grouping may begin
_GROUP_NS = 300_000  # a record shall cover at least this much time


def describe(dataset: Any, number: int, batch_size: int | None) -> LoaderInfo:
    kind = type(dataset)
    stream = kind.__name__ == "IterableDataset"
    return LoaderInfo(
        loader=number,
        library="datasets",
        class_name=f"{kind.__module__}.{kind.__qualname__}",
        dataset_class=f"{kind.__module__}.{kind.__qualname__}",
        dataset_kind="iterable" if stream else "map",
        num_workers=0,
        batch_size=batch_size,
        samples_total=None if stream else len(dataset),
        facts=facts_of(dataset),
    )


class Looped(NamedTuple):
    """A loop over a dataset itself, for later comparisons: `for row in dataset`, or
    `dataset.iter(batch_size)`."""

    dataset: Any
    batch_size: int | None


class _Rows:
    """Marks around the rows of one pass: `waiting` before a row is made, `came` after."""

    def __init__(
        self, recorder: Recorder, epoch: OpenEpoch, batched: bool, size_of: SizeOfBatch
    ) -> None:
        self._recorder = recorder
        self._epoch = epoch
        self._batched = batched
        self._size_of = size_of
        self._start: Usage | None = None
        self._rows = 0
        self._group = 0  # rows since the last record
        self._wait_ns = 0

    def waiting(self) -> Iterator[None]:
        """Yields once a row; its body runs just before the dataset is asked for the row."""
        recorder = self._recorder
        while True:
            if recorder.recording_here():
                try:
                    if self._group == 0:
                        recorder.wait_begins(self._epoch)
                        self._start = usage()
                    self._asked_ns = time.monotonic_ns()
                except Exception as error:
                    recorder.broke(error)
            yield

    def came(self, _: None, row: Any) -> Any:
        recorder = self._recorder
        if self._start is not None and recorder.recording_here():
            try:
                self._note(row)
            except Exception as error:
                recorder.broke(error)
        return row

    def _note(self, row: Any) -> None:
        now_ns = time.monotonic_ns()
        self._wait_ns += now_ns - self._asked_ns
        self._group += 1
        self._rows += 1
        start = self._start
        assert start is not None
        if self._rows > _SINGLY and now_ns - start[0] < _GROUP_NS:
            return
        samples = self._group * (_length(row) if self._batched else 1)
        epoch = self._epoch
        end = usage()
        self._recorder.fetches.append(
            fetch_between(
                start,
                # Of a group only the time inside the dataset is a fetch; the rest is step.
                (start[0] + self._wait_ns, *end[1:]),
                0,
                worker=-1,
                pid=self._recorder.pid,
                loader=epoch.loader,
                epoch=epoch.epoch,
                task=epoch.tasks,
                samples=samples,
                size=self._size_of(row),
            )
        )
        self._recorder.wait_ends(epoch, samples, -1, epoch.tasks, waited_ns=self._wait_ns)
        self._group = 0
        self._wait_ns = 0

    def ended(self) -> Iterator[Any]:
        """Chained behind the rows: yields nothing, notes the end."""
        if self._recorder.recording_here():
            self._recorder.epoch_ends(self._epoch)
        yield from ()


def _length(columns: Any) -> int:
    first = next(iter(columns.values()), ()) if isinstance(columns, dict) else columns
    try:
        return len(first)
    except TypeError:
        return 1


def _inside_a_library(depth: int) -> bool:
    """Whether the code that asked for the iterator belongs to torch or datasets themselves."""
    name = str(sys._getframe(depth).f_globals.get("__name__", ""))
    return name.partition(".")[0] in ("torch", "datasets", "accelerate", "multiprocess")


def _watched(recorder: Recorder, original: Any, batched: bool) -> Any:
    sizes: dict[int, SizeOfBatch] = {}  # by loader: looking anew in short epochs costs too much

    def iterate(dataset: Any, *args: Any, **keywords: Any) -> Any:
        real = original(dataset, *args, **keywords)
        if not recorder.recording_here() or _inside_a_library(2):
            return real
        size = keywords.get("batch_size", args[0] if args else None) if batched else 1
        try:
            number = recorder.loader_number(
                dataset,
                lambda n: describe(dataset, n, size),
                lambda own: Looped(own, size if batched else None),
            )
            epoch = recorder.open_epoch(number, time.monotonic_ns())
            size_of = sizes.setdefault(number, SizeOfBatch())
            rows = _Rows(recorder, epoch, batched, size_of)
            return map(rows.came, rows.waiting(), itertools.chain(real, rows.ended()))
        except Exception as error:
            recorder.broke(error)
            return real

    iterate.__name__, iterate.__qualname__ = original.__name__, original.__qualname__
    iterate.__doc__ = original.__doc__
    return iterate


class HuggingFaceDatasets:
    """The plug-in."""

    name = "datasets"
    package = "datasets"

    def install(self, recorder: Recorder, patches: Patches, settings: WorkerSettings) -> None:
        log_of(recorder).install(patches)
        arrow: Any = optional.loaded("datasets.arrow_dataset")
        stream: Any = optional.loaded("datasets.iterable_dataset")
        for module, name in ((arrow, "Dataset"), (stream, "IterableDataset")):
            kind = getattr(module, name, None)
            if kind is None:
                continue
            patches.set(kind, "__iter__", _watched(recorder, kind.__iter__, batched=False))
            if hasattr(kind, "iter"):
                patches.set(kind, "iter", _watched(recorder, kind.iter, batched=True))


LOADER = HuggingFaceDatasets()
