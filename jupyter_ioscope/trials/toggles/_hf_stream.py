"""A map-style Hugging Face dataset as a stream that workers share, and the order of its rows."""

from __future__ import annotations

from typing import Any

from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials.code import dataset_name
from jupyter_ioscope.trials.delivery import RowNumbers
from jupyter_ioscope.trials.spec import LoaderSpec, loaded_data

BUFFER = 1_000  # rows that a stream mixes; the library's own default
_ROW = "row"


def stream_of(dataset: Any, shards: int, seed: int | None) -> Any:
    """The stream; with a seed its shards and a buffer of rows are shuffled."""
    stream = dataset.to_iterable_dataset(num_shards=shards)
    return stream if seed is None else stream.shuffle(seed=seed, buffer_size=BUFFER)


def rows_of(spec: LoaderSpec, length: int, shards: int, seed: int | None) -> LoaderSpec:
    """A spec that delivers row numbers in the order in which `spec` delivers the rows: the same
    stream, made of numbers."""
    import datasets

    numbers = datasets.Dataset.from_dict({_ROW: range(length)})
    return spec.changed(dataset=stream_of(numbers, shards, seed), collate_fn=row_numbers, rows=None)


def row_numbers(samples: Any) -> RowNumbers:
    """The collate function of a stream of row numbers."""
    rows = samples if isinstance(samples, list) else [samples]
    return RowNumbers(int(row[_ROW]) for row in rows)


def shuffled(spec: LoaderSpec) -> bool | None:
    """Whether rows come in random order; None when the sampler is one of the user's own."""
    data = loaded_data()
    if type(spec.sampler) is data.SequentialSampler:
        return False
    plain = type(spec.sampler) is data.RandomSampler and not spec.sampler.replacement
    return True if plain and spec.sampler.num_samples == len(spec.dataset) else None


def no_stream(spec: LoaderSpec) -> str:
    """Why a spec reads no Hugging Face stream that could be changed, or ""."""
    kind = getattr(loaded("datasets"), "IterableDataset", None)
    if kind is None:
        return "no Hugging Face dataset is read: datasets is not imported by this program"
    return "" if isinstance(spec.dataset, kind) else "it reads no Hugging Face stream"


def with_stream(spec: LoaderSpec, stream: Any, call: str) -> LoaderSpec:
    """`spec` with another stream; `call` is what a user writes after the old one's name."""
    name = dict(spec.written).get("dataset", dataset_name(spec))
    kept = (row for row in spec.written if row[0] != "dataset")
    return spec.changed(
        dataset=stream,
        before=(*spec.before, f"dataset = {name}{call}"),
        written=(*kept, ("dataset", "dataset")),
    )
