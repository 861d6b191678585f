"""Narrower types only where every single value allows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
from torch.utils.data import DataLoader

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.spec import spec_of
from jupyter_ioscope.trials.toggles._hf_narrow import Narrowed, narrowed
from tests.toggle_checks import checked, run_code

pa = pytest.importorskip("pyarrow")
pytestmark = [pytest.mark.timeout(240), pytest.mark.beside]


def of(values: Any, kind: Any) -> Narrowed:
    return narrowed(pa.chunked_array([pa.array(values, kind)]))


@pytest.mark.parametrize(
    ("values", "new"),
    [
        ([0, 255], "uint8"),
        ([0, 256], "int16"),
        ([-1, 5], "int16"),
        ([-32_768, 32_767], "int16"),
        ([32_768], "int32"),
        ([-(2**31), 2**31 - 1], "int32"),
        ([2**31], ""),
        ([0] * 999 + [2**40], ""),
        ([None, 3], "uint8"),
        ([None, None], ""),
    ],
)
def test_whole_numbers_take_the_narrowest_type_that_holds_them_all(values: Any, new: str) -> None:
    assert of(values, pa.int64()).new == new


@pytest.mark.parametrize(
    ("values", "new", "reason"),
    [
        ([0.5, 0.25], "float32", "exact"),
        ([0.1, 1e30], "float32", "rounded to 7 digits"),
        ([float("nan"), float("inf"), 1.5, None], "float32", "exact"),
        ([1.0, 1e39], "", "overflow"),
        ([2.0**24 + 1, 1.0], "", "whole numbers above 16,777,216"),
        ([2.0**25, 1.0], "float32", "exact"),
        ([1.0, 1e-60], "", "too small for float32"),
    ],
)
def test_fractions_take_float32_unless_one_would_be_lost(
    values: Any, new: str, reason: str
) -> None:
    found = of(values, pa.float64())
    assert found.new == new
    assert reason in found.text


def test_values_inside_lists_count() -> None:
    assert of([[1, 2], [], None, [300]], pa.list_(pa.int64())).new == "int16"
    assert of([[1, 2], [3, 2**33]], pa.list_(pa.int64(), 2)).new == ""


def test_one_large_value_among_many_is_found_and_the_rest_narrowed(tmp_path: Path) -> None:
    drawn = np.random.default_rng(0)
    rows = 5_000
    made = datasets.Dataset.from_dict(
        {
            "small": drawn.integers(0, 200, (rows, 8)).tolist(),
            "rare": [1] * (rows - 1) + [2**35],
            "share": drawn.random(rows).tolist(),
            "title": ["t"] * rows,
        }
    )
    made.save_to_disk(str(tmp_path / "rows"))
    loader = DataLoader(datasets.load_from_disk(str(tmp_path / "rows")), batch_size=50)
    spec, same = checked(loader, "hf_narrow_casts")
    assert same.verdict == "close"
    features = spec.dataset.features
    assert features["small"] == datasets.List(datasets.Value("uint8"))
    assert features["rare"] == datasets.Value("int64")
    assert features["share"] == datasets.Value("float32")
    assert loader.dataset.features["share"] == datasets.Value("float64")  # type: ignore[attr-defined]
    said = " ".join(spec.notes)
    assert "small int64 to uint8 (0 to 199)" in said
    assert "rare: its values from 1 to 34,359,738,368 need int64" in said
    cast = run_code(code_of(spec_of(loader), spec), loader).dataset
    assert cast.features == features
    assert cast[7]["small"] == loader.dataset[7]["small"]


def test_only_the_rows_of_an_indices_mapping_are_looked_at_and_written(tmp_path: Path) -> None:
    made = datasets.Dataset.from_dict({"x": [[k % 100] * 16 for k in range(999)] + [[2**40] * 16]})
    made.save_to_disk(str(tmp_path / "rows"))
    some = datasets.load_from_disk(str(tmp_path / "rows")).select([5, 3, 700, 8] * 5)
    spec, same = checked(DataLoader(some, batch_size=5), "hf_narrow_casts")
    narrow = spec.dataset
    assert (len(narrow), narrow.data.num_rows, narrow._indices) == (20, 20, None)
    assert narrow.features["x"] == datasets.List(datasets.Value("uint8"))
    assert same.verdict in {"identical", "close"}
    said = " ".join(spec.notes)
    assert "hf_flatten_indices brings alone" in said
    assert "0.1 MB" not in said  # of 20 rows, not of all 1,000
    user = run_code(code_of(spec_of(DataLoader(some, 5)), spec), DataLoader(some, 5)).dataset
    assert (user.data.num_rows, user._indices) == (20, None)


def test_a_dataset_that_is_narrow_already_is_refused() -> None:
    made = datasets.Dataset.from_dict(
        {"x": np.arange(40, dtype=np.float32)},
        features=datasets.Features(x=datasets.Value("float32")),
    )
    with pytest.raises(TrialError, match="no column can be narrowed"):
        checked(DataLoader(made, batch_size=8), "hf_narrow_casts")
