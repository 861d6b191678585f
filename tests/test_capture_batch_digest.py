"""Checksums of batches: equal for equal data, blind to what cannot be read, and harmless."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

from jupyter_ioscope.capture.batch_digest import DigestOfBatch, batch_digest, labels_of
from jupyter_ioscope.capture.profiler import CaptureOptions, Profiler


def test_equal_batches_have_one_digest_and_others_another() -> None:
    first = {"pixels": torch.arange(4000.0), "name": ["a", "b"]}
    again: dict[str, Any] = {"pixels": torch.arange(4000.0), "name": ["a", "b"]}
    assert batch_digest(first) == batch_digest(again) != 0
    again["pixels"][-1] += 1
    assert batch_digest(first) != batch_digest(again)


@pytest.mark.parametrize("at", [0, 500, 999])
def test_an_array_is_looked_at_in_its_beginning_middle_and_end(at: int) -> None:
    plain = np.zeros(1000)
    other = plain.copy()
    other[at] = 1
    assert batch_digest(plain) != batch_digest(other)


def test_labels_stay_equal_where_pixels_are_augmented() -> None:
    labels = torch.tensor([3, 1, 2])
    one, other = (batch_digest([torch.rand(3, 8, 8), labels]) for _ in range(2))
    assert one != other
    assert labels_of(one) == labels_of(other) != 0
    assert labels_of(batch_digest(torch.zeros(9, dtype=torch.uint8))) == 0  # pixels, not labels


@pytest.mark.parametrize(
    "unreadable",
    [
        object(),
        None,
        [],
        torch.empty(0),
        torch.zeros(4, 4).t(),
        torch.zeros(3, device="meta"),
        torch.zeros(3, 3).to_sparse(),
        np.array([object()]),
    ],
    ids=["object", "none", "empty", "no items", "strided", "meta", "sparse", "objects"],
)
def test_what_is_not_plain_memory_gives_no_digest(unreadable: object) -> None:
    assert batch_digest(unreadable) == 0


def test_tensors_are_only_read() -> None:
    tensor = torch.rand(5, requires_grad=True)
    version, state = tensor._version, torch.random.get_rng_state()
    assert batch_digest((tensor, torch.ones(()).expand(3)))
    assert tensor._version == version
    assert torch.equal(torch.random.get_rng_state(), state)


def test_only_the_first_batches_and_then_few_are_looked_at() -> None:
    digest = DigestOfBatch()
    known = [digest(number) != 0 for number in range(200)]
    assert all(known[:32])
    assert 5 <= sum(known[32:]) <= 20
    digest.restart()
    assert digest(7)


def test_numpy_is_not_imported_for_it() -> None:
    code = (
        "import sys; from jupyter_ioscope.capture.batch_digest import batch_digest; "
        "assert batch_digest([b'abc', 1]); print('numpy' in sys.modules, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


class _Stream(IterableDataset[torch.Tensor]):
    def __init__(self, sharded: bool) -> None:
        self.sharded = sharded

    def __iter__(self):  # type: ignore[no-untyped-def]
        info = torch.utils.data.get_worker_info()
        first, step = (info.id, info.num_workers) if self.sharded and info else (0, 1)
        for number in range(first, 80, step):
            yield torch.full((8,), float(number))


@pytest.mark.timeout(240)
@pytest.mark.parametrize("sharded", [False, True])
def test_workers_leave_the_digests_of_what_they_made(sharded: bool) -> None:
    profiler = Profiler(CaptureOptions(stacks=False))
    profiler.start()
    try:
        for _ in DataLoader(_Stream(sharded), batch_size=4, num_workers=2):
            pass
    finally:
        profile = profiler.stop()
    made = [[row.digest for row in profile.fetches if row.worker == worker] for worker in (0, 1)]
    assert len(made[0]) == len(made[1]) == (10 if sharded else 20)
    assert all(all(row) for row in made)
    assert (made[0] == made[1]) is not sharded
    assert len(set(made[0])) == len(made[0])
