"""Containers that are opened for each sample are opened once; others are left alone."""

from __future__ import annotations

import io
import sqlite3
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.trials.compare import compare
from jupyter_ioscope.trials.toggles.keep_open import TOGGLE, KeepOpen
from tests.toggle_trials import compiles, tried

pytestmark = [pytest.mark.timeout(300), pytest.mark.beside, pytest.mark.usefixtures("short_trials")]
h5py = pytest.importorskip("h5py")
NUMBER = 60


class Opening(Dataset[Any]):
    """Opens `path` for every sample, in one of several ways."""

    def __init__(self, path: str, way: str) -> None:
        self.path, self.way = path, way

    def __len__(self) -> int:
        return NUMBER

    def __getitem__(self, index: int) -> Any:
        data = bytearray(getattr(self, self.way)(index))
        return torch.frombuffer(data, dtype=torch.uint8)

    def hdf(self, index: int) -> Any:
        with h5py.File(self.path, "r") as file:
            return file["x"][index].tobytes()

    def hdf_two_at_once(self, index: int) -> Any:
        first = h5py.File(self.path, "r")
        with h5py.File(self.path) as second:
            row = second["x"][index].tobytes()
        other = first["x"][0].tobytes()
        first.close()
        return row + other

    def hdf_for_writing(self, index: int) -> Any:
        with h5py.File(self.path, "r+") as file:
            file.attrs["read"] = index
        return self.hdf(index)

    def zipped(self, index: int) -> Any:
        with zipfile.ZipFile(self.path) as archive, archive.open(f"{index}") as member:
            return member.read()

    def zipped_with_rest(self, index: int) -> Any:
        archive = zipfile.ZipFile(Path(self.path))
        member = archive.open(f"{index}")
        first = member.read(10)
        archive.close()
        return first + member.read() + zipfile.ZipFile(self.path).read("0")

    def tar(self, index: int) -> Any:
        with tarfile.open(self.path) as archive:
            member = archive.extractfile(f"{index}")
            assert member is not None
            return member.read()

    def tar_in_order(self, index: int) -> Any:
        with tarfile.open(self.path, "r:") as archive:
            for number, info in enumerate(archive):
                if number == index:
                    member = archive.extractfile(info)
                    assert member is not None
                    return member.read()

    def sql(self, index: int) -> Any:
        base = sqlite3.connect(self.path)
        row = base.execute("select x from t where i = ?", (index,)).fetchone()
        base.close()
        return row[0]

    def sql_changing(self, index: int) -> Any:
        base = sqlite3.connect(self.path)
        base.execute("update t set x = x where i = ?", (index,))
        row = base.execute("select x from t where i = ?", (index,)).fetchone()
        base.close()
        return row[0]

    def mapped(self, index: int) -> Any:
        lmdb = pytest.importorskip("lmdb")
        with lmdb.open(self.path, readonly=True, lock=False) as base, base.begin() as transaction:
            return transaction.get(str(index).encode())


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("containers")
    rows = [np.random.default_rng(i).integers(0, 255, 500, dtype=np.uint8) for i in range(NUMBER)]
    with h5py.File(folder / "x.h5", "w") as file:
        file["x"] = np.stack(rows)
        for group in range(300):  # an index that takes a while to read
            file[f"group{group}/values"] = np.arange(3)
    with zipfile.ZipFile(folder / "x.zip", "w") as archive, tarfile.open(
        folder / "x.tar", "w"
    ) as tar:  # fmt: skip
        for index in range(NUMBER):
            data = rows[index].tobytes()
            archive.writestr(f"{index}", data)
            info = tarfile.TarInfo(f"{index}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        for index in range(800):
            archive.writestr(f"another{index}", b"")
    base = sqlite3.connect(folder / "x.db")
    base.execute("create table t (i integer primary key, x blob)")
    base.executemany("insert into t values (?, ?)", [(i, r.tobytes()) for i, r in enumerate(rows)])
    base.commit()
    base.close()
    return {name: str(folder / f"x.{name}") for name in ("h5", "zip", "tar", "db")}


@pytest.mark.parametrize(
    ("way", "kind", "library"),
    [
        ("hdf", "h5", "h5py"),
        ("hdf_two_at_once", "h5", "h5py"),
        ("zipped", "zip", "zipfile"),
        ("zipped_with_rest", "zip", "zipfile"),
        ("tar", "tar", "tarfile"),
        ("tar_in_order", "tar", "tarfile"),
        ("sql", "db", "sqlite3"),
    ],
)
@pytest.mark.parametrize("workers", [{}, {"num_workers": 2, "multiprocessing_context": "fork"}])
def test_samples_are_the_same_out_of_a_kept_container(
    paths: dict[str, str], way: str, kind: str, library: str, workers: dict[str, Any]
) -> None:
    dataset = Opening(paths[kind], way)
    before = vars(h5py.File)["__init__"], zipfile.ZipFile.__init__, tarfile.open, sqlite3.connect
    found = tried(TOGGLE, DataLoader(dataset, batch_size=6, **workers))
    assert found.same
    assert found.samples == NUMBER
    assert found.spec.in_child == (KeepOpen((library,)),)
    assert vars(dataset) == {"path": paths[kind], "way": way}
    after = vars(h5py.File)["__init__"], zipfile.ZipFile.__init__, tarfile.open, sqlite3.connect
    assert after == before
    compiles(TOGGLE, found.spec)


def test_an_lmdb_environment_is_kept(tmp_path: Path) -> None:
    lmdb = pytest.importorskip("lmdb")
    with lmdb.open(str(tmp_path / "base")) as base, base.begin(write=True) as transaction:
        for index in range(NUMBER):
            transaction.put(str(index).encode(), bytes([index]) * 40)
    found = tried(TOGGLE, DataLoader(Opening(str(tmp_path / "base"), "mapped"), batch_size=6))
    assert found.same
    assert found.spec.in_child == (KeepOpen(("lmdb",)),)


@pytest.mark.parametrize(
    ("way", "kind", "reason"),
    [
        ("hdf_for_writing", "h5", "opened for writing"),
        ("sql_changing", "db", r"the database is changed \(UPDATE\)"),
    ],
)
def test_what_is_written_to_is_refused(
    tmp_path: Path, paths: dict[str, str], way: str, kind: str, reason: str
) -> None:
    copy = tmp_path / f"own.{kind}"
    copy.write_bytes(Path(paths[kind]).read_bytes())
    with pytest.raises(TrialError, match=reason):
        tried(TOGGLE, DataLoader(Opening(str(copy), way), batch_size=6))


class Once(Opening):
    """Opened once, as it should be."""

    file: Any = None

    def hdf(self, index: int) -> Any:
        if self.file is None:
            self.file = h5py.File(self.path, "r")
        return self.file["x"][index].tobytes()


def test_a_file_that_is_opened_once_is_left_alone(paths: dict[str, str]) -> None:
    with pytest.raises(TrialError, match=r"opened no container .* again"):
        tried(TOGGLE, DataLoader(Once(paths["h5"], "hdf"), batch_size=6))


def test_it_is_found_faster(paths: dict[str, str]) -> None:
    loader = DataLoader(Opening(paths["zip"], "zipped"), batch_size=6)
    found = compare(loader, toggles=["keep_open"], budget_s=90)
    assert found.same_data.verdict == "identical"
    assert found.verdict == "faster"
    assert found.ratio > 2
    assert "zipfile.ZipFile(self.path)" in found.code
