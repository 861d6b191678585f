"""Arrays of which samples use a part are mapped; compressed ones are unpacked once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.trials.compare import compare
from jupyter_ioscope.trials.toggles import npy_memory_map, npz_unpacked
from jupyter_ioscope.trials.toggles._npz_map import NpzMapped
from tests.toggle_trials import compiles, tried

pytestmark = [pytest.mark.timeout(300), pytest.mark.second, pytest.mark.usefixtures("short_trials")]
ROWS = 3_000


class Rows(Dataset[Any]):
    """Rows of an array in a file, read in one of several ways."""

    def __init__(self, path: Path, way: str, key: str = "a") -> None:
        self.path, self.way, self.key = str(path), way, key
        self.archive: Any = np.load(path) if way == "kept" else None

    def __len__(self) -> int:
        return 80

    def __getitem__(self, index: int) -> Any:
        return getattr(self, self.way)(index * 31), index

    def kept(self, at: int) -> Any:
        return torch.from_numpy(self.archive[self.key][at])

    def by_attribute(self, at: int) -> Any:
        with np.load(self.path, mmap_mode="r") as archive:
            return torch.from_numpy(getattr(archive.f, self.key)[at])

    def plain(self, at: int) -> Any:
        return torch.from_numpy(np.load(self.path)[at])

    def mapped(self, at: int) -> Any:
        return torch.from_numpy(np.load(self.path, mmap_mode="r")[at].copy())

    def writing(self, at: int) -> Any:
        array = np.load(self.path)
        array = array if self.path.endswith("npy") else array[self.key]
        array[at] += 1
        return torch.from_numpy(array[at])

    def whole(self, at: int) -> Any:
        array = np.load(self.path)
        return torch.from_numpy(array if self.path.endswith("npy") else array[self.key])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("arrays")
    wide = np.random.default_rng(3).standard_normal((ROWS, 200)).astype(np.float32)
    arrays = {
        "a": wide,
        "bytes": (wide * 20).astype(np.uint8),
        "f": np.asfortranarray(wide[:, :150]),
        "few": np.arange(9),
    }
    np.savez(folder / "plain.npz", **arrays)  # type: ignore[arg-type]
    np.savez_compressed(folder / "packed.npz", **arrays)  # type: ignore[arg-type]
    np.save(folder / "a.npy", wide)
    np.save(folder / "small.npy", wide[:, :2])
    return folder


@pytest.mark.parametrize("key", ["a", "bytes", "f"])
@pytest.mark.parametrize("name", ["plain", "packed"])
@pytest.mark.parametrize("way", ["kept", "by_attribute"])
def test_rows_of_a_member_are_the_same_when_mapped(
    folder: Path, name: str, way: str, key: str
) -> None:
    found = tried(
        npz_unpacked.TOGGLE, DataLoader(Rows(folder / f"{name}.npz", way, key), batch_size=8)
    )
    assert found.same
    assert isinstance(found.spec.in_child[0], NpzMapped)
    compiles(npz_unpacked.TOGGLE, found.spec)


@pytest.mark.parametrize("toggle", [npz_unpacked.TOGGLE, npy_memory_map.TOGGLE])
def test_what_a_sample_writes_stays_its_own(folder: Path, toggle: Any) -> None:
    path = folder / ("plain.npz" if toggle.name == "npz_unpacked" else "a.npy")
    before = path.read_bytes()
    assert tried(toggle, DataLoader(Rows(path, "writing"), batch_size=8)).same
    assert path.read_bytes() == before


def test_a_numpy_file_is_mapped(folder: Path) -> None:
    load = np.load
    workers: Any = {"num_workers": 2, "multiprocessing_context": "fork"}
    found = tried(
        npy_memory_map.TOGGLE, DataLoader(Rows(folder / "a.npy", "plain"), batch_size=8, **workers)
    )
    assert found.same
    assert np.load is load
    compiles(npy_memory_map.TOGGLE, found.spec)


@pytest.mark.parametrize(
    ("toggle", "name", "way", "reason"),
    [
        (npz_unpacked, "plain.npz", "whole", "the arrays are used whole"),
        (npz_unpacked, "a.npy", "plain", "read no array of an NPZ archive"),
        (npy_memory_map, "a.npy", "whole", "the arrays are used whole: 100"),
        (npy_memory_map, "a.npy", "mapped", "mmap_mode already"),
        (npy_memory_map, "small.npy", "plain", "the arrays are small"),
        (npy_memory_map, "plain.npz", "kept", "np.load is not called"),
    ],
)
def test_where_nothing_is_to_be_had_it_is_refused(
    folder: Path, toggle: Any, name: str, way: str, reason: str
) -> None:
    with pytest.raises(TrialError, match=reason):
        tried(toggle.TOGGLE, DataLoader(Rows(folder / name, way), batch_size=8))


@pytest.mark.parametrize(
    ("name", "way", "toggle"),
    [("packed.npz", "kept", "npz_unpacked"), ("a.npy", "plain", "npy_memory_map")],
)
def test_it_is_found_faster(folder: Path, name: str, way: str, toggle: str) -> None:
    loader = DataLoader(Rows(folder / name, way), batch_size=8, shuffle=True)
    found = compare(loader, toggles=[toggle], budget_s=90)
    assert found.same_data.verdict == "identical"
    assert found.verdict == "faster"
    assert found.ratio > 2
