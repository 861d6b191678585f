"""Batched fetches, faster joining and packed batches give the same batches."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.compare import compare
from jupyter_ioscope.trials.spec import spec_of
from jupyter_ioscope.trials.toggles import _packed
from jupyter_ioscope.trials.toggles._fast_tensor import by_numpy
from tests.toggle_checks import checked, refusal, run_code
from tests.trial_loaders import random_states

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.beside,
    pytest.mark.usefixtures("short_trials"),
    # What is slow about it is the point here.
    pytest.mark.filterwarnings("ignore:Creating a tensor from a list"),
]


class Arrays(Dataset[Any]):
    def __init__(self, rows: int = 900) -> None:
        self.x = np.arange(rows * 6, dtype=np.float32).reshape(rows, 6)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: Any) -> Any:
        return {"x": self.x[index], "row": index}


class Scaled(Arrays):
    """Understands many indices, and gives something else for them."""

    def __getitem__(self, index: Any) -> Any:
        return self.x[index] / self.x[index].max()


class Drawn(Arrays):
    def __getitem__(self, index: Any) -> Any:
        return self.x[index] + np.random.random()


def joined_slowly(rows: list[Any]) -> Any:
    return torch.tensor([row["x"] for row in rows]), torch.tensor([row["row"] for row in rows])


class Boxes(Dataset[Any]):
    def __len__(self) -> int:
        return 400

    def __getitem__(self, index: int) -> Any:
        return torch.full((16,), float(index)), [
            torch.arange(1 + (index + k) % 4) for k in range(12)
        ]


def listed(rows: list[Any]) -> Any:
    return {"x": torch.stack([x for x, _ in rows]), "boxes": [boxes for _, boxes in rows]}


def table(rows: int = 4_000) -> TensorDataset:
    return TensorDataset(torch.arange(rows), torch.rand(rows, 8))


def test_a_table_of_tensors_is_fetched_by_one_call_and_faster() -> None:
    loader = DataLoader(table(), batch_size=64, shuffle=True)
    before = random_states()
    found = compare(loader, toggles=["batched_fetch"], budget_s=90)
    assert found.same_data.verdict == "identical"
    assert found.ratio > 2
    assert random_states() == before
    assert type(loader.dataset) is TensorDataset


@pytest.mark.parametrize(
    "dataset", [Arrays(), table(), Subset(table(), list(range(50, 800)))], ids=lambda d: type(d)
)
def test_the_code_for_batched_fetches_gives_the_same_batches(dataset: Any) -> None:
    loader = DataLoader(dataset, batch_size=32)
    spec, same = checked(loader, "batched_fetch")
    assert same.verdict == "identical"
    made = run_code(code_of(spec_of(loader), spec), loader)
    for mine, theirs in zip(made, loader, strict=True):
        pairs = [(mine[key], theirs[key]) for key in theirs] if isinstance(mine, dict) else []
        pairs = pairs or list(zip(mine, theirs, strict=True))
        assert all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize(
    ("dataset", "reason"),
    [
        (Scaled(), "gives something else than its items joined"),
        (Drawn(), "drawn at random"),
        ([torch.ones(2)] * 50, "raises TypeError"),
    ],
)
def test_a_dataset_that_cannot_be_asked_for_many_is_refused(dataset: Any, reason: str) -> None:
    with pytest.raises(TrialError, match=reason):
        checked(DataLoader(dataset, batch_size=8), "batched_fetch")


def test_batched_fetches_need_torchs_own_collate() -> None:
    loader = DataLoader(Arrays(), batch_size=8, collate_fn=joined_slowly)
    assert "collate_fn needs the samples one by one" in refusal(loader, "batched_fetch")
    assert "makes no batches" in refusal(DataLoader(Arrays(), batch_size=None), "batched_fetch")


def test_lists_of_arrays_are_joined_faster_with_the_same_bytes() -> None:
    class Wide(Arrays):
        def __init__(self) -> None:
            self.x = np.random.default_rng(1).random((600, 1_500)).astype(np.float32)

    before = torch.tensor
    loader = DataLoader(Wide(), batch_size=32, collate_fn=joined_slowly)
    found = compare(loader, toggles=["fast_collate"], budget_s=90)
    assert found.same_data.verdict == "identical"
    assert found.ratio > 2
    assert torch.tensor is before
    if found.verdict == "faster":
        assert "numpy.stack" in found.code
        assert "test_trials_toggle_batches.py" in found.code


def test_a_loader_that_joins_no_lists_is_refused() -> None:
    with pytest.raises(TrialError, match="none of the first 4 batches makes tensors of lists"):
        checked(DataLoader(table(), batch_size=8), "fast_collate")


@pytest.mark.parametrize(
    "data",
    [
        [np.ones(5, "float32"), np.zeros(5, "float32")],
        [np.ones((2, 3), "int16")] * 3,
        [np.array([True, False])] * 40,
        [[0.1 * k for k in range(40)] for _ in range(3)],
        [[k, k + 1] for k in range(50)],
        [[1, 2.5] * 40, [3, 4] * 40],
        ((1e300, 2.0) * 40, (float("nan"), 5e-324) * 40),
        [[[float(k)] * 5] * 5 for k in range(4)],
    ],
)
def test_numpys_tensor_is_the_one_that_torch_makes(data: Any) -> None:
    mine, theirs = by_numpy(data), torch.tensor(data)
    assert mine is not None
    assert mine.dtype == theirs.dtype
    assert torch.equal(torch.nan_to_num(mine), torch.nan_to_num(theirs))


@pytest.mark.parametrize(
    "data",
    [
        [[1.0, 2.0], [3.0]] * 40,
        [["a"] * 40] * 2,
        [[2**63] * 70],
        [[1, None] * 40],
        [np.ones(2), np.ones(3)],
        [np.ones(2, "float32"), np.ones(2)],
        [np.array(["a"], dtype=object)] * 2,
        [True, False] * 40,
        [1, 2],
    ],
)
def test_what_is_not_certain_is_left_to_torch(data: Any) -> None:
    assert by_numpy(data) is None


def test_packed_batches_are_handed_over_faster_and_equal() -> None:
    loader = DataLoader(
        Boxes(), batch_size=40, num_workers=1, collate_fn=listed, multiprocessing_context="fork"
    )
    found = compare(loader, toggles=["packed_batches"], budget_s=8)
    assert found.same_data.verdict == "identical"
    assert found.ratio > 1.5  # above 10 where nothing else runs: two pairs tell
    spec, _ = checked(loader, "packed_batches")
    made = run_code(code_of(spec_of(loader), spec), loader)
    for mine, theirs in zip(made, loader, strict=True):
        assert torch.equal(mine["x"], theirs["x"])
        for a, b in zip(mine["boxes"], theirs["boxes"], strict=True):
            assert all(torch.equal(one, two) for one, two in zip(a, b, strict=True))


def test_packing_keeps_what_is_not_a_plain_tensor() -> None:
    odd = {
        "names": ["a", ("b", 3)],
        "sparse": torch.eye(3).to_sparse(),
        "scalar": torch.tensor(4),
        "empty": torch.zeros(0, 3),
        "turned": torch.arange(6).reshape(2, 3).T,
        "large": torch.zeros(100_000),
        "text": "x",
    }
    batch = pickle.loads(pickle.dumps(_packed.PackedCollate(lambda rows: odd)([])))
    assert batch["names"] == odd["names"]
    assert batch["scalar"].shape == ()
    assert batch["empty"].shape == (0, 3)
    assert torch.equal(batch["turned"], torch.arange(6).reshape(2, 3).T)
    assert torch.equal(batch["sparse"].to_dense(), torch.eye(3))
    assert batch["large"].shape == (100_000,)
    assert list(batch) == list(odd)


def test_packing_needs_workers() -> None:
    assert "num_workers is 0" in refusal(DataLoader(Boxes()), "packed_batches")
