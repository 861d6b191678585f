"""What an arm delivers first: written down inside its process, read back by the parent."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from jupyter_ioscope.trials.build import build
from jupyter_ioscope.trials.counting import Beats, Indices, seed_all, shut_down, worker_ids
from jupyter_ioscope.trials.page_cache import mapped_files
from jupyter_ioscope.trials.samples import Sample, sample_of, split
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.trial import prepared
from jupyter_ioscope.trials.values import values_digest


class RowNumbers(list[int]):
    """A batch that holds nothing but the numbers of its rows."""


class Limit(NamedTuple):
    """Where to stop: whichever comes first, but never before one batch."""

    samples: int = 256
    size_bytes: int = 48_000_000
    seconds: float = 3.0


def deliver(
    emit: Any,
    stop: Any,
    folder: str,
    spec: LoaderSpec,
    seed: int,
    limit: Limit,
    path: str,
    reseed: int | None = None,
) -> dict[str, Any]:
    """The first samples of a loader: ids, forms, digests; their numbers go to files at `path`.

    `reseed` seeds once more after the order was drawn: what differs then is random content. It
    reaches the dataset only when that runs in this process (no workers).
    """
    spec, files = prepared(spec, folder, True)
    seed_all(seed)
    indices, beats = Indices(spec, reseed), Beats(emit)
    collated = spec.batch_size is not None or spec.batch_sampler is not None
    collated = collated or spec.rows_in_batch is not None
    with indices.noted(), _Writer(path) as made:
        iterator = iter(build(spec))
        beats(0, 0, worker_ids(iterator))
        ended, delivered, late_s = True, 0, 0.0
        rows: list[int] = []
        for number, batch in enumerate(iterator):
            count = indices.samples(number, batch)
            if isinstance(batch, RowNumbers):
                rows += batch
            else:
                made.add(batch, count, collated or indices.lists)
            delivered += count
            beats(number + 1, delivered)
            # From the first batch on: a slow start must not leave just one batch to compare.
            late_s = late_s or time.monotonic() + limit.seconds
            full = delivered >= limit.samples or made.size_bytes > limit.size_bytes
            if full or stop() or time.monotonic() > late_s:
                ended = False
                break
        workers = worker_ids(iterator)
        found = files.found() | mapped_files(workers) if files is not None else set()
        shut_down(iterator, own_process=bool(folder))
    if rows:
        ids = [repr(row) for row in rows]
    elif spec.iterable:
        ids = []
    else:
        ids = [repr(index) for drawn in indices.ids for index in drawn][:delivered]
    if ended is False and not spec.iterable:
        ended = delivered >= _length(spec)
    return {
        "ids": ids,
        "samples": delivered,
        "complete": ended,
        "split": made.is_split,
        "forms": made.forms,
        "digests": made.digests,
        "exact": made.exact,
        "values": made.values,
        "path": path,
        "files": sorted(found),
    }


def _length(spec: LoaderSpec) -> float:
    try:
        return len(spec.sampler)
    except (TypeError, NotImplementedError):
        return float("inf")


class _Writer:
    """Keeps digests in memory and numbers on disk: `path` + .bin with an index in .json."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.exact: list[str] = []
        self.forms: list[str] = []
        self.digests: list[str] = []
        self.values: list[str] = []
        self.is_split = True
        self.size_bytes = 0
        self._index: list[list[tuple[str, str, list[int], int]]] = []
        self._file = open(f"{path}.bin", "wb")  # noqa: SIM115 - open as long as batches come

    def add(self, batch: Any, count: int, collated: bool) -> None:
        parts = split(batch, count) if collated else [batch]
        if parts is None:
            self.is_split = False
            parts = [batch]
        for part in parts:
            self._add(sample_of(part))
            self.values.append(values_digest(part))

    def _add(self, sample: Sample) -> None:
        self.forms.append(sample.form)
        self.digests.append(sample.digest)
        self.exact.append(sample.exact)
        self.size_bytes += sample.size_bytes
        rows = []
        for name, array in sample.numbers:
            rows.append((name, array.dtype.str, list(array.shape), self._file.tell()))
            self._file.write(array.tobytes())
        self._index.append(rows)

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()
        with open(f"{self.path}.json", "w") as file:
            json.dump(self._index, file)


class Delivered(NamedTuple):
    """A delivery as read back. A unit is a sample, or a batch that cannot be split into them."""

    ids: list[str]
    samples: int
    complete: bool
    split: bool
    forms: list[str]
    digests: list[str]
    exact: list[str]
    values: list[str]
    path: str
    files: list[str]  # data files that were used; none where the job ran in the kernel

    def numbers(self) -> Iterator[list[tuple[str, Any]]]:
        """(name, numpy array) of each value of every unit, for which "close" has a meaning."""
        import numpy

        with open(f"{self.path}.json") as file:
            index = json.load(file)
        with open(f"{self.path}.bin", "rb") as file:
            for rows in index:
                found = []
                for name, dtype, shape, offset in rows:
                    kind = numpy.dtype(dtype)
                    file.seek(offset)
                    raw = file.read(int(numpy.prod(shape, dtype=int)) * kind.itemsize)
                    found.append((name, numpy.frombuffer(raw, kind).reshape(shape)))
                yield found

    def forget(self) -> None:
        for end in (".bin", ".json"):
            os.unlink(self.path + end)
