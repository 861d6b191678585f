"""Files of a batch are asked for ahead where it can be known which they are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.spec import spec_of
from jupyter_ioscope.trials.toggles import read_ahead
from jupyter_ioscope.trials.toggles._ahead import ReadAhead, ask_for
from jupyter_ioscope.trials.toggles.read_ahead import TOGGLE
from tests.io_causes.cold_files import evict, resident_fraction, write_through
from tests.toggle_trials import compiles, runs, tried
from tests.trial_loaders import Counting

pytestmark = [pytest.mark.timeout(300), pytest.mark.beside]
FILES = 80


class Listed(Dataset[Any]):
    """Paths in a list, as image folders have them."""

    def __init__(self, paths: list[Path]) -> None:
        self.root = str(paths[0].parent)
        self.entries = [(str(path), number % 3) for number, path in enumerate(paths)]

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: int) -> Any:
        path, label = self.entries[index]
        with open(path, "rb") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8), label


class Computed(Listed):
    """Paths that are only made when they are wanted."""

    def __init__(self, paths: list[Path]) -> None:
        self.root = str(paths[0].parent)

    def __len__(self) -> int:
        return FILES

    def __getitem__(self, index: int) -> Any:
        with open(os.path.join(self.root, f"{index}.bin"), "rb") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("ahead")
    noise = np.random.default_rng(2)
    made = [folder / f"{number}.bin" for number in range(FILES)]
    for path in made:
        write_through(path, noise.bytes(20_000))
    return made


@pytest.mark.parametrize("kind", [Listed, Computed])
@pytest.mark.parametrize("workers", [{}, {"num_workers": 2, "multiprocessing_context": "fork"}])
def test_samples_are_the_same(paths: list[Path], kind: Any, workers: dict[str, Any]) -> None:
    dataset = kind(paths)
    before = dict(vars(dataset))
    found = tried(TOGGLE, DataLoader(dataset, batch_size=8, shuffle=True, **workers))
    assert found.same
    assert found.samples == FILES
    assert isinstance(found.spec.dataset, ReadAhead)
    assert vars(dataset) == before
    compiles(TOGGLE, found.spec)


def test_the_files_of_a_batch_are_in_the_cache_before_its_first_sample(paths: list[Path]) -> None:
    if not evictable(paths[0]):
        pytest.skip("files cannot be evicted from the page cache here")

    class Looking(Listed):
        def __getitem__(self, index: int) -> Any:
            deadline = 200
            while resident_fraction(paths[9]) < 1 and deadline:
                os.sched_yield()
                deadline -= 1
            return resident_fraction(paths[9])

    found = tried(TOGGLE, DataLoader(Listed(paths), batch_size=8)).spec.dataset
    ahead = ReadAhead(Looking(paths), found._files)
    evict(paths)
    assert ahead.__getitems__([3, 9]) == [1.0, 1.0]


def evictable(path: Path) -> bool:
    path.read_bytes()
    evict([path])
    return resident_fraction(path) < 1


def test_its_code_gives_an_equal_loader(paths: list[Path]) -> None:
    loader = DataLoader(Listed(paths), batch_size=8)
    code = code_of(spec_of(loader), tried(TOGGLE, loader).spec)
    assert "os.open(self.dataset.entries[index][0], os.O_RDONLY)" in code
    new = runs(code, loader=loader, DataLoader=DataLoader)["loader"]
    for one, two in zip(new, loader, strict=True):
        assert torch.equal(one[0], two[0])


@pytest.mark.parametrize(
    ("dataset", "options", "reason"),
    [
        (list(range(40)), {}, "no file for each sample"),
        (Counting(40, shared=True), {}, "decides itself"),
        (list(range(40)), {"batch_size": 1}, "a batch is one sample"),
    ],
    ids=["numbers", "iterable", "single"],
)
def test_where_nothing_can_be_asked_for_it_is_refused(
    dataset: Any, options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(TrialError, match=reason):
        tried(TOGGLE, DataLoader(dataset, **({"batch_size": 4} | options)))


def test_a_look_at_every_sample_must_not_take_long(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_ahead, "_WHOLE", 0)
    with pytest.raises(TrialError, match="no list of paths"):
        tried(TOGGLE, DataLoader(Computed(paths), batch_size=8))


def test_a_missing_file_is_no_fault_of_ours(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    ask_for(str(tmp_path / "missing"))
    assert len(os.listdir("/proc/self/fd")) == before
