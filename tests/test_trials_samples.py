"""Batches are split into samples, digested, and their differences put into words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from jupyter_ioscope.trials.samples import sample_of, split


@pytest.mark.parametrize(
    "value",
    [
        torch.arange(6).reshape(2, 3),
        torch.ones(3, dtype=torch.bfloat16),
        torch.eye(3).to_sparse(),
        np.arange(4.0),
        np.array(["a", {"b": 1}], dtype=object),
        {"x": [1, 2.5, None], "y": ("text", b"bytes", True)},
        Image.new("RGB", (4, 3), "red"),
        np.float32(3.5),
        torch.tensor(1),
    ],
)
def test_equal_values_have_one_digest_and_one_form(value: Any) -> None:
    assert sample_of(value)[:3] == sample_of(value)[:3]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.zeros(3), torch.tensor([0.0, 0.0, 1e-30])),
        (torch.zeros(3), torch.zeros(3, dtype=torch.float64)),
        (torch.zeros(3), np.zeros(3, dtype="float32")),
        (torch.zeros(2, 3), torch.zeros(3, 2)),
        ({"a": 1}, {"b": 1}),
        (["ab", "c"], ["a", "bc"]),
        (1, True),
        (b"x", "x"),
        (0.0, -0.0),
        (Image.new("RGB", (2, 2), (1, 2, 3)), Image.new("RGB", (2, 2), (1, 2, 4))),
    ],
)
def test_different_values_have_different_digests(one: Any, other: Any) -> None:
    assert sample_of(one).digest != sample_of(other).digest


def test_labels_are_exact_and_pictures_are_not() -> None:
    picture = sample_of((torch.zeros(2, 2, dtype=torch.uint8), 3))
    other = sample_of((torch.ones(2, 2, dtype=torch.uint8), 3))
    relabelled = sample_of((torch.zeros(2, 2, dtype=torch.uint8), 4))
    assert picture.exact == other.exact != relabelled.exact


def test_collated_batches_split_into_their_samples() -> None:
    batch = {"image": torch.arange(6).reshape(2, 3), "name": ["a", "b"], "pair": (torch.ones(2),)}
    first, second = split(batch, 2) or []
    assert (first["image"].tolist(), first["name"]) == ([0, 1, 2], "a")
    assert (second["image"].tolist(), second["pair"][0].item()) == ([3, 4, 5], 1.0)


def test_two_fields_of_a_batch_of_two_are_not_taken_for_two_samples() -> None:
    parts = split([torch.tensor([[1.0], [2.0]]), torch.tensor([7, 8])], 2) or []
    assert [(x.tolist(), int(y)) for x, y in parts] == [([1.0], 7), ([2.0], 8)]


def test_a_list_of_samples_stays_one() -> None:
    assert split([{"a": 1}, {"a": 2}, {"a": 3}], 3) == [{"a": 1}, {"a": 2}, {"a": 3}]


def test_what_does_not_hold_one_row_a_sample_is_not_split() -> None:
    assert split({"packed": torch.zeros(17), "offsets": torch.zeros(5)}, 4) is None
