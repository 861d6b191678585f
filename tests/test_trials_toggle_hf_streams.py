"""Streams that make batches themselves, and streams cut into more shards: every sample once."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pytest
from torch.utils.data import DataLoader

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.trials.spec import spec_of
from jupyter_ioscope.trials.toggles import hf_reshard, hf_stream_batches
from tests.toggle_checks import checked, refusal, run_code

pytestmark = [pytest.mark.timeout(120), pytest.mark.beside]
ROWS = 300


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A stream of two Parquet files of several row groups each."""
    folder = tmp_path_factory.mktemp("parquet")
    for name, rows in (("a", range(200)), ("b", range(200, ROWS))):
        table().select(rows).to_parquet(folder / f"{name}.parquet", batch_size=20)
    return stream_of(folder)


def stream_of(folder: Path) -> Any:
    return datasets.load_dataset(
        "parquet",
        data_files=[str(folder / "a.parquet"), str(folder / "b.parquet")],
        streaming=True,
        split="train",
        cache_dir=str(folder / "cache"),
    )


def numbers_of(loader: Any) -> Counter[int]:
    return Counter(int(n) for batch in loader for n in batch["n"])


def table(**more: Any) -> Any:
    made: dict[str, Any] = {"n": list(range(ROWS)), "x": [[k, k + 1] for k in range(ROWS)]}
    return datasets.Dataset.from_dict(made | more)


@pytest.mark.parametrize(
    ("workers", "form", "shuffled"), [(0, None, True), (2, None, False), (2, "torch", True)]
)
def test_batches_of_the_stream_hold_each_row_once(workers: int, form: Any, shuffled: bool) -> None:
    stream = table().to_iterable_dataset(num_shards=3).with_format(form)
    if shuffled:
        stream = stream.shuffle(seed=3, buffer_size=50)
    stream = stream.select_columns(["n"]) if form is None else stream
    loader = DataLoader(
        stream, 16, num_workers=workers, multiprocessing_context="fork" if workers else None
    )
    spec, same = checked(loader, "hf_stream_batches")
    assert (same.verdict, same.samples_compared) == ("identical", ROWS)
    assert spec.rows_in_batch == 16
    made = run_code(hf_stream_batches.code(spec_of(loader)), loader)
    assert numbers_of(made) == Counter(range(ROWS))
    assert len(next(iter(made))["n"]) == 16


def test_the_last_rows_are_dropped_as_before() -> None:
    loader = DataLoader(table().to_iterable_dataset().with_format("torch"), 32, drop_last=True)
    _, same = checked(loader, "hf_stream_batches")
    assert (same.verdict, same.samples_compared) == ("identical", 288)
    assert "drop_last_batch=True" in hf_stream_batches.code(spec_of(loader))


def test_other_types_are_refused_after_a_look() -> None:
    halves = table(half=[k / 2 for k in range(ROWS)]).to_iterable_dataset()
    with pytest.raises(TrialError, match="other values or types"):
        checked(DataLoader(halves, 16), "hf_stream_batches")


def joined(rows: Any) -> Any:
    return rows


def test_what_has_no_stream_or_no_batches_is_refused() -> None:
    stream = table().to_iterable_dataset()
    for loader, reason in (
        (DataLoader(table()), "no Hugging Face stream"),
        (DataLoader(stream, batch_size=None), "there are none"),
        (DataLoader(stream.batch(4), batch_size=None), "makes the batches already"),
        (DataLoader(stream, 4, collate_fn=joined), "one by one"),
    ):
        assert reason in refusal(loader, "hf_stream_batches")


def test_a_stream_of_few_files_gets_shards_for_all_workers(files: Any) -> None:
    loader = DataLoader(files, 16, num_workers=3, multiprocessing_context="fork")
    spec, same = checked(loader, "hf_reshard")
    assert spec.dataset.num_shards == 15
    assert "The stream has 15 shards instead of 2." in spec.notes
    assert same.verdict == "identical"
    assert same.text.startswith(f"All {ROWS} samples of an epoch")
    made = run_code(hf_reshard.code(spec_of(loader)), loader)
    assert numbers_of(made) == Counter(range(ROWS))


def test_both_together_still_give_each_row_once(files: Any) -> None:
    stream = files.with_format("torch")
    loader = DataLoader(stream, 10, num_workers=3, multiprocessing_context="fork")
    spec, same = checked(loader, "hf_reshard", "hf_stream_batches")
    assert (spec.dataset.num_shards, spec.rows_in_batch) == (15, 10)
    assert same.verdict == "identical"


def doubled(row: dict[str, Any]) -> dict[str, Any]:
    return {"x": [2 * value for value in row["x"]]}


@pytest.mark.parametrize(("shards", "workers", "wanted"), [(1, 2, 2), (2, 3, 6)])
def test_a_stream_of_a_table_is_cut_between_rows(shards: int, workers: int, wanted: int) -> None:
    stream = table().to_iterable_dataset(num_shards=shards).map(doubled)
    if shards > 1:
        stream = stream.shuffle(seed=3, buffer_size=50).with_format("torch")
    loader = DataLoader(stream, 16, num_workers=workers, multiprocessing_context="fork")
    spec, same = checked(loader, "hf_reshard")
    assert (spec.dataset.num_shards, stream.num_shards) == (wanted, shards)
    assert (same.verdict, same.samples_compared) == ("identical", ROWS)
    assert numbers_of(DataLoader(pickle.loads(pickle.dumps(spec.dataset)))) == Counter(range(ROWS))
    assert f"num_shards={wanted})" in hf_reshard.code(spec_of(loader))


def rows() -> Iterator[dict[str, int]]:
    yield from ({"n": number} for number in range(20))


def test_shards_that_cannot_be_cut_are_refused() -> None:
    few = datasets.Dataset.from_dict({"n": [1, 2]}).to_iterable_dataset()
    for stream in (datasets.IterableDataset.from_generator(rows), few):
        loader = DataLoader(stream, 16, num_workers=3, multiprocessing_context="fork")
        with pytest.raises(TrialError, match="its only shard cannot be cut further"):
            checked(loader, "hf_reshard")


def test_enough_shards_need_no_cutting(files: Any) -> None:
    assert "as many" in refusal(DataLoader(files, 8, num_workers=2), "hf_reshard")
    assert "num_workers is 0" in refusal(DataLoader(files, 8), "hf_reshard")
