"""A compressed tar archive is unpacked once; plain ones and others are left alone."""

from __future__ import annotations

import io
import os
import random
import tarfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.trials.compare import compare
from jupyter_ioscope.trials.toggles._tar_copy import Copy, same_archive, unpacked
from jupyter_ioscope.trials.toggles.archive_unpacked import TOGGLE
from tests.toggle_trials import compiles, tried

pytestmark = [pytest.mark.timeout(300), pytest.mark.second, pytest.mark.usefixtures("short_trials")]
MEMBERS = 60


def make(path: Path, mode: Any) -> Path:
    noise = random.Random(4)
    with tarfile.open(path, mode) as archive:
        for index in range(MEMBERS):
            data = bytes([index, index // 2]) * 200 + noise.randbytes(20_000)
            info = tarfile.TarInfo(f"m/{index}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "m/3"
        archive.addfile(link)
    return path


class Members(Dataset[Any]):
    def __init__(self, path: Path, way: str) -> None:
        self.path, self.way = str(path), way
        self.archive = tarfile.open(path)  # noqa: SIM115 - as long as the dataset
        self.infos = self.archive.getmembers()

    def __del__(self) -> None:
        self.archive.close()

    def __len__(self) -> int:
        return MEMBERS

    def __getitem__(self, index: int) -> Any:
        if self.way == "again":
            with tarfile.open(self.path) as archive:
                return self.read(archive, f"m/{index}")
        if self.way == "link" and index % 5 == 0:
            return self.read(self.archive, "link")
        return self.read(self.archive, self.infos[index])

    def read(self, archive: tarfile.TarFile, member: Any) -> Any:
        found = archive.extractfile(member)
        assert found is not None
        with found:
            return torch.frombuffer(bytearray(found.read()), dtype=torch.uint8)


@pytest.mark.parametrize(
    ("mode", "way", "workers"),
    [
        ("w:gz", "kept", 0),
        ("w:gz", "again", 0),
        ("w:gz", "link", 0),
        ("w:bz2", "again", 0),
        ("w:xz", "kept", 0),
        ("w:gz", "again", 2),
    ],
)
def test_members_are_the_same_out_of_the_copy(
    tmp_path: Path, mode: str, way: str, workers: int
) -> None:
    dataset = Members(make(tmp_path / "a.packed", mode), way)
    kept = dataset.archive.fileobj
    at = kept.tell() if kept is not None else 0
    options: Any = {"num_workers": workers, "multiprocessing_context": "fork"} if workers else {}
    # Sequential order, so that the plain arm reads each archive forwards only.
    found = tried(TOGGLE, DataLoader(dataset, batch_size=6, **options))
    assert found.same
    assert found.samples == MEMBERS
    assert os.listdir(tmp_path) == ["a.packed"]
    assert dataset.archive.fileobj is kept
    assert kept is not None
    assert kept.tell() == at
    compiles(TOGGLE, found.spec)


def test_a_plain_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrialError, match="the archives are not compressed"):
        tried(TOGGLE, DataLoader(Members(make(tmp_path / "a.tar", "w"), "kept"), batch_size=6))


def test_a_loader_without_archives_is_refused() -> None:
    with pytest.raises(TrialError, match="read no member of a tar"):
        tried(TOGGLE, DataLoader([1, 2, 3]))  # type: ignore[arg-type]


def test_unpacking_stops_at_its_limits(tmp_path: Path) -> None:
    path = str(make(tmp_path / "a.tgz", "w:gz"))
    assert "free space" in str(unpacked(path, str(tmp_path), most_bytes=1_000_000, seconds=9))
    assert "longer than" in str(unpacked(path, str(tmp_path), most_bytes=1 << 30, seconds=0))


def test_a_copy_of_an_archive_that_changed_is_not_used(tmp_path: Path) -> None:
    path = make(tmp_path / "a.tgz", "w:gz")
    copy = unpacked(str(path), str(tmp_path), most_bytes=1 << 30, seconds=30)
    assert isinstance(copy, Copy)
    assert same_archive(copy)
    path.write_bytes(path.read_bytes() + b"more")
    assert not same_archive(copy)


def test_it_is_found_faster(tmp_path: Path) -> None:
    loader = DataLoader(Members(make(tmp_path / "a.tgz", "w:gz"), "kept"), 6, shuffle=True)
    found = compare(loader, toggles=["archive_unpacked"], budget_s=90)
    assert found.same_data.verdict == "identical"
    assert found.verdict == "faster"
    assert found.ratio > 2
