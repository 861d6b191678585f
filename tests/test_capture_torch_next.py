"""Waits of torch's loaders are known by the name that each iterator gives them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader, dataloader  # noqa: E402

from jupyter_ioscope.capture.loaders import torch_dataloader  # noqa: E402
from jupyter_ioscope.capture.loaders._loader import WorkerSettings  # noqa: E402
from jupyter_ioscope.capture.patching import Patches  # noqa: E402
from jupyter_ioscope.capture.recorder import Recorder  # noqa: E402

torch_iterator: Any = dataloader._BaseDataLoaderIter


class Delivered(torch_iterator):  # type: ignore[misc]
    """A loader's iterator whose batches are there, without workers to make them."""

    def __init__(self, loader: DataLoader[Any], name: str) -> None:
        self._num_workers, self._in_order, self._workers = loader.num_workers, True, ()
        self._sampler_iter, self._num_yielded, self._dataset_kind = iter(()), 0, 0
        self._IterableDataset_len_called, self._rcvd_idx, self._profile_name = None, 0, name
        self._dataset, self._index_sampler = loader.dataset, loader._index_sampler
        self._persistent_workers = self._pin_memory = False
        self._collate_fn = loader.collate_fn

    def _next_data(self) -> int:
        self._rcvd_idx += 1
        return 0


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    made, patches = Recorder(str(tmp_path)), Patches()
    torch_dataloader.LOADER.install(made, patches, WorkerSettings(str(tmp_path)))
    yield made
    patches.undo()


def begun(name: str) -> Delivered:
    data: Any = [1, 2, 3, 4]
    loader: DataLoader[Any] = DataLoader(data, num_workers=2)
    _ = loader.__iter__  # looked up: an epoch begins
    iterator = Delivered(loader, name)
    next(iterator)
    return iterator


@pytest.mark.parametrize("names", [("one", "other"), ("the same", "the same")])
def test_batches_of_loops_inside_each_other_stay_apart(
    recorder: Recorder, names: tuple[str, str]
) -> None:
    first, second = (begun(name) for name in names)
    for _ in range(5):
        next(first)
        next(second)
        next(second)
    assert Counter(row.epoch for row in recorder.batches()) == {0: 6, 1: 11}
    tasks = [row.task for row in recorder.batches() if row.epoch == 1]
    assert tasks == list(range(11))


def test_an_iterator_that_is_gone_leaves_its_name_to_nobody(recorder: Recorder) -> None:
    for number in range(20):
        next(begun("".join(["name", str(number)])))  # the string is new and dies, as its iterator
    assert Counter(row.epoch for row in recorder.batches()) == dict.fromkeys(range(20), 2)
    assert not recorder.gaps
