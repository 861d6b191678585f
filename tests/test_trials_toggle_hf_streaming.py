"""Streams of rows: every row once an epoch, proven by numbers of rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import datasets
import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, SequentialSampler, Subset

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.spec import LoaderSpec, spec_of
from jupyter_ioscope.trials.toggles import _hf_stream, hf_streaming
from tests.toggle_checks import checked, refusal, run_code

pytestmark = [pytest.mark.timeout(300), pytest.mark.beside]


def numbers(rows: int = 500) -> Any:
    made = {"x": [k * 3 for k in range(rows)], "name": [f"n{k}" for k in range(rows)]}
    return datasets.Dataset.from_dict(made)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("shuffle", [False, True])
def test_every_row_comes_once_and_is_the_same_row(workers: int, shuffle: bool) -> None:
    context = "fork" if workers else None
    loader = DataLoader(
        numbers(), 16, shuffle=shuffle, num_workers=workers, multiprocessing_context=context
    )
    spec, same = checked(loader, "hf_streaming")
    assert same.verdict == "identical"
    assert "all 500 came exactly once in an epoch of B" in same.text
    assert spec.dataset.num_shards >= max(1, workers)
    made = run_code(hf_streaming.code(spec_of(loader)), loader)
    seen = Counter(int(x) for batch in made for x in batch["x"])
    assert seen == Counter(k * 3 for k in range(500))


def test_shuffled_rows_of_torch_tensors_stream_too() -> None:
    loader = DataLoader(numbers().shuffle(seed=2).with_format("torch"), 16, shuffle=True)
    _, same = checked(loader, "hf_streaming")
    assert same.verdict == "identical"


def test_a_row_that_comes_twice_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = _hf_stream.stream_of

    def doubled(dataset: Any, shards: int, seed: int | None) -> Any:
        return datasets.concatenate_datasets([plain(dataset, shards, seed)] * 2)

    monkeypatch.setattr(_hf_stream, "stream_of", doubled)
    with pytest.raises(TrialError, match="delivers 500 of 500 rows, up to 2 times an epoch"):
        checked(DataLoader(numbers(), 16), "hf_streaming")


def test_rows_that_differ_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = _hf_stream.stream_of

    def turned(dataset: Any, shards: int, seed: int | None) -> Any:
        other = dataset
        if "x" in dataset.features:
            other = dataset.select(range(len(dataset) - 1, -1, -1))
        return plain(other, shards, seed)

    monkeypatch.setattr(_hf_stream, "stream_of", turned)
    _, same = checked(DataLoader(numbers(), 16), "hf_streaming")
    assert same.verdict == "different"


def test_fewer_shards_than_workers_are_refused() -> None:
    loader = DataLoader(numbers(), num_workers=4)
    assert "would leave some of the 4 workers" in refusal(loader, "hf_streaming=2")
    assert refusal(loader, "hf_streaming=8") == ""


class Own(DataLoader[Any]):
    pass


class Inside(Dataset[Any]):
    def __init__(self) -> None:
        self.rows = numbers()

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> Any:
        return self.rows[index]["x"]


@pytest.mark.parametrize(
    ("loader", "reason"),
    [
        (DataLoader(Inside()), "Inside asks for rows by number"),
        (Own(numbers()), "Own is a DataLoader of its own"),
        (DataLoader(numbers(), sampler=torch.utils.data.SubsetRandomSampler([3])), "its sampler"),
        (DataLoader(numbers(), 8, drop_last=True, num_workers=2), "drop rows of every worker"),
        (DataLoader(numbers().with_format("torch", columns=["x"])), "covers some columns only"),
        (DataLoader(Subset(numbers(), [1, 2])), "Subset asks for rows by number"),
        (DataLoader(numbers().to_iterable_dataset()), "streamed already"),
        (
            DataLoader(numbers(), batch_sampler=BatchSampler(SequentialSampler([1]), 1, False)),
            "a batch_sampler of its own",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_needs_rows_by_number_is_refused(loader: Any, reason: str) -> None:
    assert reason in refusal(loader, "hf_streaming")


def test_the_code_says_how_to_get_another_order() -> None:
    spec: LoaderSpec = spec_of(DataLoader(numbers(), 8, shuffle=True, num_workers=2))
    code = hf_streaming.code(spec)
    assert ".to_iterable_dataset(num_shards=2).shuffle(seed=42, buffer_size=1000)" in code
    assert "set_epoch" in code
    assert "shuffle=True" not in code_of(spec, hf_streaming.apply(spec))
