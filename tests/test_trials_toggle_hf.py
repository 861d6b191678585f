"""Toggles of Hugging Face datasets: equal samples, reasons where they do not apply."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.compare import compare
from jupyter_ioscope.trials.spec import LoaderSpec, spec_of
from tests import hf_rows
from tests.toggle_checks import checked, refusal, run_code
from tests.trial_loaders import random_states

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.beside,
    pytest.mark.usefixtures("short_trials"),
    pytest.mark.filterwarnings("ignore:Creating a tensor from a list"),
]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return hf_rows.table(tmp_path_factory.mktemp("hf"))


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return hf_rows.pictures(tmp_path_factory.mktemp("hf"))


class Around(Dataset[Any]):
    """A user's dataset around a Hugging Face one."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, index: int) -> Any:
        return torch.as_tensor(self.inner[index]["tokens"])


def code_for(loader: Any, spec: LoaderSpec) -> str:
    return code_of(spec_of(loader), spec)


def test_long_rows_as_tensors_make_the_same_batches_faster(tmp_path: Path) -> None:
    rows = hf_rows.table(tmp_path, rows=500, width=1_500)
    loader = DataLoader(rows, batch_size=25, collate_fn=hf_rows.tokens_only)
    before, form = random_states(), rows.format
    found = compare(loader, toggles=["hf_format_torch"], budget_s=90)
    assert found.same_data.verdict == "identical"
    assert found.ratio > 2
    assert rows.format == form
    assert random_states() == before


def test_torchs_own_collate_gets_one_tensor_for_a_list_of_them(rows: Any) -> None:
    for name in ("hf_format_torch", "hf_format_numpy"):
        loader = DataLoader(rows, batch_size=16)
        spec, same = checked(loader, name)
        assert same.verdict == "close"
        assert "the same values, held otherwise" in same.text
        batch = next(iter(run_code(code_for(loader, spec), loader)))
        assert batch["tokens"].shape == (16, 48)
        assert batch["title"][3] == "row 3"


def test_a_dataset_inside_a_users_own_is_found_and_left_alone(rows: Any) -> None:
    outer = Around(rows)
    loader = DataLoader(outer, batch_size=16)
    spec, same = checked(loader, "hf_format_torch")
    assert same.verdict == "identical"
    assert outer.inner is rows
    assert spec.dataset is not outer
    made = run_code(code_for(loader, spec), loader)
    assert made.dataset.inner.format["type"] == "torch"
    assert outer.inner is rows


def test_rows_that_the_collate_function_cannot_use_are_refused(rows: Any) -> None:
    loader = DataLoader(rows, batch_size=8, collate_fn=hf_rows.tokens_only)
    with pytest.raises(TrialError, match="the code after the dataset cannot use such rows"):
        checked(loader, "hf_format_arrow")


def test_formats_are_refused_where_they_are_on_or_have_no_place(rows: Any) -> None:
    assert "in the format 'torch' already" in refusal(
        DataLoader(rows.with_format("torch")), "hf_format_torch"
    )
    made = rows.with_transform(lambda batch: batch)
    assert "set_transform" in refusal(DataLoader(made), "hf_format_numpy")
    assert "no Hugging Face dataset" in refusal(
        DataLoader(TensorDataset(torch.ones(3))), "hf_format_torch"
    )
    texts = rows.select_columns(["title"])
    assert "none of its columns holds numbers" in refusal(DataLoader(texts), "hf_format_torch")


def test_only_the_columns_that_are_read_stay(photos: Any) -> None:
    loader = DataLoader(photos, batch_size=12, collate_fn=hf_rows.labels_only)
    found = compare(loader, toggles=["hf_select_columns"], budget_s=90)
    assert found.ratio > 3
    assert found.same_data.verdict == "identical"
    spec, _ = checked(loader, "hf_select_columns")
    code = code_for(loader, spec)
    assert "dataset = loader.dataset.select_columns(['label'])" in code
    assert list(run_code(code, loader).dataset.features) == ["label"]
    assert list(photos.features) == ["photo", "label", "name"]


def test_columns_that_all_go_into_the_batch_are_left_alone(rows: Any) -> None:
    with pytest.raises(TrialError, match="which of them the loop uses is not seen here"):
        checked(DataLoader(rows, batch_size=8), "hf_select_columns")


def whole_rows(batch: list[Any]) -> torch.Tensor:
    return torch.tensor([{**row}["label"] for row in batch])


def test_unused_pictures_stay_encoded_even_where_rows_are_taken_whole(photos: Any) -> None:
    loader = DataLoader(photos, batch_size=12, collate_fn=whole_rows)
    with pytest.raises(TrialError, match="all 3 columns of a row are passed on"):
        checked(loader, "hf_select_columns")
    spec, same = checked(loader, "hf_decode_off")
    assert same.verdict == "identical"
    made = run_code(code_for(loader, spec), loader)
    assert made.dataset.features["photo"].decode is False
    assert photos.features["photo"].decode is True


def test_pictures_that_are_looked_at_stay_decoded(photos: Any) -> None:
    loader = DataLoader(photos, batch_size=12, collate_fn=hf_rows.brightness)
    with pytest.raises(TrialError, match="the decoded form of photo is used"):
        checked(loader, "hf_decode_off")


def test_shuffled_rows_are_written_out_in_their_order(rows: Any) -> None:
    mixed = rows.shuffle(seed=3)
    assert "has no indices mapping" in refusal(DataLoader(rows), "hf_flatten_indices")
    loader = DataLoader(mixed.with_format("torch"), batch_size=32)
    spec, same = checked(loader, "hf_flatten_indices")
    assert same.verdict == "identical"
    assert spec.dataset._indices is None
    assert spec.dataset.format["type"] == "torch"
    assert mixed._indices is not None
    assert any("Writing the 600 rows in order took" in note for note in spec.notes)


def test_a_table_in_memory_is_read_from_a_file(rows: Any, tmp_path: Path, monkeypatch: Any) -> None:
    assert "memory-mapped already" in refusal(DataLoader(rows), "hf_memory_mapped")
    kept = datasets.Dataset.from_dict({"x": list(range(500))}).shuffle(seed=1)
    loader = DataLoader(kept.with_format("numpy"), batch_size=25)
    spec, same = checked(loader, "hf_memory_mapped")
    assert same.verdict == "identical"
    assert type(spec.dataset._data).__name__ == "MemoryMappedTable"
    monkeypatch.chdir(tmp_path)
    made = run_code(code_for(loader, spec), loader)
    assert [b["x"].tolist() for b in made] == [b["x"].tolist() for b in loader]


def test_rows_are_read_once_for_all_columns(rows: Any) -> None:
    loader = DataLoader(hf_rows.ColumnByColumn(rows), batch_size=20)
    found = compare(loader, toggles=["hf_rows_first"], budget_s=90)
    assert found.same_data.verdict == "identical"
    assert found.ratio > 1.4
    spec, _ = checked(loader, "hf_rows_first")
    assert "select_columns(['tokens', 'weight'])" in code_for(loader, spec)
    with pytest.raises(TrialError, match="no rows were read column by column"):
        checked(DataLoader(Around(rows), batch_size=8), "hf_rows_first")


def test_a_loop_over_batches_of_a_dataset_is_compared(rows: Any) -> None:
    loop = hf_rows.Loop(rows.shuffle(seed=9))
    found = compare(loop, toggles=["hf_flatten_indices"], budget_s=90)
    assert found.same_data.verdict == "identical"
    assert found.ratio > 1.2
    spec, _ = checked(loop, "hf_flatten_indices")
    code = code_for(loop, spec)
    assert "dataset.rows = dataset.rows.flatten_indices()" in code
    made = run_code(code, loop)
    assert made.rows._indices is None
    assert loop.rows._indices is not None


def test_a_loop_over_rows_of_a_dataset_takes_toggles_of_datasets_only(rows: Any) -> None:
    assert "not a torch DataLoader" in refusal(rows, "workers")
    spec, same = checked(rows, "hf_format_arrow")
    assert same.verdict == "close"
    made = run_code(code_for(rows, spec), rows)
    assert made.format["type"] == "arrow"
