"""Loaders that make batches in other ways are compared row by row: a batch from one call of the
dataset, and streams that batch themselves."""

from __future__ import annotations

from typing import Any

import datasets
import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model.comparison import SameData
from jupyter_ioscope.trials.counting import Indices, rows_of
from jupyter_ioscope.trials.hf_spec import direct_spec, rows_in_batch
from jupyter_ioscope.trials.isolation import Isolation
from jupyter_ioscope.trials.progress import Reporter
from jupyter_ioscope.trials.runner import Runner
from jupyter_ioscope.trials.same_data import same_data
from jupyter_ioscope.trials.samples import split
from jupyter_ioscope.trials.spec import spec_of

pytestmark = [pytest.mark.timeout(120), pytest.mark.beside]


def table(rows: int = 100, shift: int = 0) -> Any:
    made = {"x": [[k, k + 1, k + 2] for k in range(shift, rows + shift)], "y": list(range(rows))}
    return datasets.Dataset.from_dict(made).with_format("torch")


def check(a: Any, b: Any) -> SameData:
    with Isolation() as isolation:
        runner = Runner(isolation, Reporter(None, 60), None, silence_s=20)
        return same_data(runner.deliver, spec_of(a), spec_of(b), toggled=False)


def by_call(rows: Any, order: Any) -> DataLoader[Any]:
    return DataLoader(rows, batch_size=None, sampler=BatchSampler(order, 8, drop_last=False))


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_batch_from_one_call_holds_the_rows_of_a_joined_batch(shuffle: bool) -> None:
    rows = table()
    order = RandomSampler(rows) if shuffle else SequentialSampler(rows)
    found = check(DataLoader(rows, 8, shuffle=shuffle), by_call(rows, order))
    assert (found.verdict, found.samples_compared) == ("identical", 100)
    assert found.text == "All 100 samples of an epoch: same order, same bytes."


def test_rows_of_such_batches_that_differ_are_found() -> None:
    other = table(shift=1)
    found = check(DataLoader(table(), 8), by_call(other, SequentialSampler(other)))
    assert found.verdict == "different"


def test_a_stream_that_batches_itself_holds_the_same_rows() -> None:
    stream = table().to_iterable_dataset(num_shards=2)
    found = check(DataLoader(stream, 8), DataLoader(stream.batch(8), batch_size=None))
    assert (found.verdict, found.samples_compared) == ("identical", 100)


def test_loops_over_streams_are_compared_with_each_other() -> None:
    stream = table(60).to_iterable_dataset()
    assert check(stream, stream.batch(7)).verdict == "identical"
    assert check(stream, table(60, shift=2).to_iterable_dataset()).verdict == "different"


def test_streams_tell_how_many_rows_they_put_into_a_batch() -> None:
    stream = table().to_iterable_dataset()
    assert rows_in_batch(stream) is None
    assert rows_in_batch(stream.batch(16)) == 16
    assert rows_in_batch(stream.with_format(None).batch(16)) == 16
    assert rows_in_batch(stream.batch(16).map(dict)) == 16
    assert rows_in_batch(stream.map(dict, batched=True, batch_size=4)) is None
    assert rows_in_batch(stream.batch(16).map(dict, batched=True, batch_size=4)) is None


def test_the_last_short_batch_of_a_stream_counts_its_rows() -> None:
    spec = spec_of(DataLoader(table(20).to_iterable_dataset().batch(16), batch_size=None))
    indices = Indices(spec)
    counts = [indices.samples(k, batch) for k, batch in enumerate(spec.dataset)]
    assert counts == [16, 4]
    assert rows_of({"x": [torch.ones(3), torch.ones(2)]}) == 2
    assert rows_of(table(5).with_format("arrow")[:]) == 5


def test_tables_split_into_rows() -> None:
    rows = split(table(4).with_format("arrow")[:], 4)
    assert rows is not None
    assert [row["y"].to_pylist() for row in rows] == [[0], [1], [2], [3]]


def test_a_loop_in_batches_counts_rows() -> None:
    spec = direct_spec(table(20), batch_size=8)
    assert spec is not None
    counts = [Indices(spec).samples(k, batch) for k, batch in enumerate(spec.dataset)]
    assert counts == [8, 8, 4]


def test_an_iterator_is_no_loader() -> None:
    with pytest.raises(InputError):
        spec_of(iter(table().to_iterable_dataset()))
