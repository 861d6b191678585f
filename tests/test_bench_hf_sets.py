"""The steps of the Hugging Face bench deliver the same samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.bench.hf_sets import collate_lists, tensors_of, text_loader, text_rows
from tests.bench.hf_steps import STEPS
from tests.bench.rows_hf import hf_step_rows


@pytest.fixture
def text(tmp_path: Path) -> str:
    import datasets

    rows = text_rows(200)
    rows.save_to_disk(f"{tmp_path}/text")
    narrow = rows.features.copy()
    narrow["input_ids"] = datasets.Sequence(datasets.Value("int16"), length=128)
    narrow["attention_mask"] = datasets.Sequence(datasets.Value("int8"), length=128)
    rows.cast(narrow).save_to_disk(f"{tmp_path}/text-narrow")
    return str(tmp_path)


def test_every_step_of_the_text_set_delivers_the_same_rows(text: str) -> None:
    def numbers(step: str) -> list[list[int]]:
        loader: Any = text_loader(text, step)
        loader.num_workers = 0
        loader.prefetch_factor = None
        found = torch.cat([batch["input_ids"] for batch in loader])
        assert found.dtype == torch.int64
        return sorted(found.tolist())

    first, *others = map(numbers, STEPS["text"])
    assert len(first) == 200
    assert all(other == first for other in others)


def test_tables_become_the_tensors_that_lists_become() -> None:
    rows = text_rows(5)
    joined = collate_lists(rows.to_list())
    table = rows.select_columns(["input_ids", "attention_mask"]).with_format("arrow")[:]
    found = tensors_of(table)
    assert found.keys() == {"input_ids", "attention_mask"}
    assert all(torch.equal(found[name], joined[name]) for name in found)


def test_gains_are_told_from_each_beginning() -> None:
    def step(rate: float, peak: float) -> dict[str, list[float]]:
        values = {"samples_per_s": rate, "cpu_ms": 1 / rate, "first_s": 1.0 / rate}
        values |= {"peak_bytes": peak, "peak_own_bytes": peak}
        return {name: [value] * 3 for name, value in values.items()}

    steps = {"list": step(10, 8e9), "memory": step(20, 4e9), "everything": step(100, 1e9)}
    rows = list(hf_step_rows({"sets": {"text": {"steps": steps, "runs": 3}}, "load": 1.0}))
    memory = next(row for row in rows if row.what == "everything: highest memory lower by")
    assert memory.measured == "text, from a list of samples × 8.0; text, from kept in memory × 4.0"
    assert memory.met == "met"
