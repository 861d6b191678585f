"""What a Hugging Face dataset tells about itself, also behind wrappers, without being read."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

datasets = pytest.importorskip("datasets")
torch = pytest.importorskip("torch")

from jupyter_ioscope.capture.loaders._hf_facts import facts_of  # noqa: E402

List, Value = datasets.List, datasets.Value


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("table")
    datasets.Dataset.from_dict(
        {"flat": [[1.0] * 7] * 20, "nested": [[[1, 2]] * 3] * 20, "text": ["a"] * 20}
    ).save_to_disk(folder / "d")
    return datasets.load_from_disk(folder / "d")


def told(dataset: Any) -> dict[str, str]:
    return dict(facts_of(dataset))


def test_a_table_tells_its_kinds_of_columns_and_where_it_lies(table: Any) -> None:
    facts = told(table)
    assert (facts["kind"], facts["rows"], facts["columns"]) == ("Dataset", "20", "3")
    assert (facts["lists"], facts["nested_lists"], facts["strings"]) == ("flat", "nested", "text")
    assert (facts["values_per_row"], facts["inner_lists_per_row"]) == ("13", "3")
    assert (facts["in_memory"], facts["indices_mapping"], facts["format"]) == ("no", "no", "python")
    assert int(facts["data_bytes"]) >= 20 * 7 * 8


def test_a_mapping_a_format_and_memory_are_told(table: Any) -> None:
    facts = told(table.shuffle(seed=1).with_format("numpy", columns=["flat"]))
    assert (facts["indices_mapping"], facts["format"]) == ("yes", "numpy")
    assert (facts["format_columns"], facts["values_per_row"]) == ("flat", "7")
    assert told(datasets.Dataset.from_dict({"x": [1]}))["in_memory"] == "yes"


def test_pictures_count_as_decoded_only_while_they_are() -> None:
    features = datasets.Features({"p": datasets.Image(), "n": Value("int64")})
    dataset = datasets.Dataset.from_dict({"p": [None], "n": [1]}, features=features)
    assert told(dataset)["decoded"] == "p"
    assert "decoded" not in told(dataset.cast_column("p", datasets.Image(decode=False)))
    assert "decoded" not in told(dataset.select_columns(["n"]))


def test_fixed_arrays_are_no_nested_lists() -> None:
    features = datasets.Features({"a": datasets.Array2D((2, 3), "float32")})
    dataset = datasets.Dataset.from_dict({"a": [[[1, 2, 3]] * 2]}, features=features)
    facts = told(dataset)
    assert facts["fixed_arrays"] == "a"
    assert "nested_lists" not in facts
    assert facts["values_per_row"] == "6"


def test_a_stream_tells_its_shards_and_its_buffer(table: Any) -> None:
    stream = table.to_iterable_dataset(num_shards=4).shuffle(seed=1, buffer_size=50)
    facts = told(stream)
    assert (facts["kind"], facts["shards"]) == ("IterableDataset", "4")
    assert facts["shuffle_buffer"] == "50"
    assert "BufferShuffled" in facts["stream"]


def test_it_is_found_behind_wrappers_and_in_attributes(table: Any) -> None:
    class Mine(torch.utils.data.Dataset):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            self.rows = table

    subset = torch.utils.data.Subset(table, [0, 1])
    for dataset in (subset, torch.utils.data.ConcatDataset([subset]), Mine()):
        facts = told(dataset)
        assert (facts["kind"], facts["wrapped"]) == ("Dataset", "yes")
    assert told(table)["wrapped"] == "no"


TABLE: Any = None


class ReadsGlobal:
    """As in a notebook, where the dataset is a variable of a cell above."""

    def __getitem__(self, index: int) -> Any:
        return TABLE[index]


def test_it_is_found_where_functions_of_the_dataset_take_it_from(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Calls:
        def __init__(self, get: Any) -> None:
            self.get = get

        def __getitem__(self, index: int) -> Any:
            return self.get(index)

    def read(rows: Any, index: int) -> Any:
        return rows[index]

    assert told(Calls(lambda index: table[index]))["kind"] == "Dataset"
    assert told(Calls(functools.partial(read, table)))["kind"] == "Dataset"
    assert told(Calls(Calls(lambda index: table[index]).__getitem__))["kind"] == "Dataset"
    monkeypatch.setitem(ReadsGlobal.__getitem__.__globals__, "TABLE", table)
    assert told(ReadsGlobal())["kind"] == "Dataset"
    assert facts_of(Calls(lambda index: index)) == ()


def test_a_dataset_that_holds_itself_is_searched_once() -> None:
    class Ring:
        def __init__(self) -> None:
            self.me = [self]
            self.many = [object() for _ in range(10_000)]

    assert facts_of(Ring()) == ()


def test_other_and_broken_datasets_tell_nothing_and_raise_nothing(table: Any) -> None:
    class Trap:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

    assert facts_of([1, 2, 3]) == ()
    assert facts_of(Trap()) == ()
    broken = table.select([0])
    del broken._data
    assert told(broken)["kind"] == "Dataset"


def test_nothing_is_decoded_or_transformed() -> None:
    def never(batch: Any) -> Any:
        raise AssertionError("a row was read")

    dataset = datasets.Dataset.from_dict({"x": [[1, 2]]}).with_transform(never)
    assert told(dataset)["format"] == "custom"
