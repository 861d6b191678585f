"""Values are the same whatever holds them, and other values are not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from jupyter_ioscope.trials.values import values_digest

pa = pytest.importorskip("pyarrow")
SAME = [
    ([1.5, 2.0], torch.tensor([1.5, 2.0])),
    ([torch.tensor(0.1, dtype=torch.float64)], np.array([0.1], dtype=np.float32)),
    ({"a": [1, 2]}, {"a": np.array([1, 2], dtype=np.uint8)}),
    ({"a": [[1, 2], [3, 4]]}, {"a": torch.tensor([[1, 2], [3, 4]], dtype=torch.int16)}),
    ([True, False], torch.tensor([True, False])),
    (["a", "b"], np.array(["a", "b"], dtype=object)),
    ({"a": [1, 2], "t": ["x", "y"]}, pa.table({"a": [1, 2], "t": ["x", "y"]})),
]
OTHER = [
    ([1, 2], [2, 1]),
    ([1, 2], [1.0, 2.0]),
    ([1, 0], [True, False]),
    ({"a": 1}, {"b": 1}),
    (["ab"], ["a", "b"]),
    ([1.0], [1.001]),
    ([[1], "x"], [["x"], 1]),
    ([2**70], [2**71]),
]


@pytest.mark.parametrize(("a", "b"), SAME)
def test_the_same_values_have_one_digest(a: object, b: object) -> None:
    assert values_digest(a) == values_digest(b)


@pytest.mark.parametrize(("a", "b"), OTHER)
def test_other_values_have_another(a: object, b: object) -> None:
    assert values_digest(a) != values_digest(b)
