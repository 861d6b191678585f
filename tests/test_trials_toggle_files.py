"""Small files packed into one, tiny reads through a buffer, slow file systems copied."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.storage import filesystems
from jupyter_ioscope.trials.compare import compare
from jupyter_ioscope.trials.toggles import buffered_open, local_copy, packed_files
from jupyter_ioscope.trials.toggles._copies import LocalCopies
from jupyter_ioscope.trials.toggles._pack import Limits, Pack, make_pack
from jupyter_ioscope.trials.toggles.buffered_open import BufferedOpen
from tests.io_causes import slow_mount as slow
from tests.toggle_trials import compiles, tried

pytestmark = [pytest.mark.timeout(300), pytest.mark.second, pytest.mark.usefixtures("short_trials")]
FILES = 120


class Files(Dataset[Any]):
    """A file for each sample, opened in one of several ways."""

    def __init__(self, folder: Path, way: str) -> None:
        self.folder, self.way = str(folder), way
        self.kept: Any = open(self.path(0), "rb", buffering=0) if way == "kept" else None  # noqa: SIM115

    def __len__(self) -> int:
        return FILES

    def __del__(self) -> None:
        if self.kept is not None:
            self.kept.close()

    def path(self, index: int) -> str:
        return os.path.join(self.folder, f"class{index % 3}", f"{index}.bin")

    def __getitem__(self, index: int) -> Any:
        return torch.frombuffer(bytearray(getattr(self, self.way)(index)), dtype=torch.uint8), index

    def whole(self, index: int) -> Any:
        with open(self.path(index), "rb") as file:
            return file.read()

    def library(self, index: int) -> Any:
        path = Path(self.path(index))
        array = np.fromfile(path, dtype=np.uint8, count=50)
        text = path.read_text("latin-1")[:50]
        return array.tobytes() + path.read_bytes() + text.encode("latin-1")

    def lines(self, index: int) -> Any:
        with open(self.path(index), encoding="latin-1", newline="") as file:
            return "".join(file).encode("latin-1")

    def missing(self, index: int) -> Any:
        try:
            with open(self.path(index) + "x", "rb") as file:
                return file.read()
        except FileNotFoundError as error:
            return str(error.filename[-5:]).encode() + self.whole(index)

    def pieces(self, index: int) -> Any:
        with open(self.path(index), "rb", buffering=0) as file:
            size = os.path.getsize(self.path(index))
            return b"".join(file.read(16) for _ in range(size // 16))

    def lines_unbuffered(self, index: int) -> Any:
        with open(self.path(index), "rb", buffering=0) as file:
            return b"".join(file)

    def unbuffered(self, index: int) -> Any:
        with open(self.path(index), "rb", buffering=0) as file:
            return file.read()

    def one(self, index: int) -> Any:
        with open(self.path(0), "rb") as file:
            return file.read(100) + bytes([index])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    noise = np.random.default_rng(9)
    for index in range(FILES):
        path = folder / f"class{index % 3}" / f"{index}.bin"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(noise.bytes(4_000) + b"\r\nend\n" + b"x" * 9)
    (folder / "class0" / "notes.txt").write_text("not of these")
    return folder


@pytest.mark.parametrize("way", ["whole", "library", "lines", "missing"])
@pytest.mark.parametrize("workers", [{}, {"num_workers": 2, "multiprocessing_context": "fork"}])
def test_files_are_the_same_out_of_the_pack(
    folder: Path, way: str, workers: dict[str, Any]
) -> None:
    before = open, sorted(folder.rglob("*"))
    found = tried(packed_files.TOGGLE, DataLoader(Files(folder, way), batch_size=8, **workers))
    assert found.same
    assert found.samples == FILES
    assert (open, sorted(folder.rglob("*"))) == before
    compiles(packed_files.TOGGLE, found.spec)


def test_spawned_workers_read_the_pack_too(folder: Path) -> None:
    loader = DataLoader(
        Files(folder, "whole"), batch_size=8, num_workers=1, multiprocessing_context="spawn"
    )
    assert tried(packed_files.TOGGLE, loader).same


def test_one_file_for_all_samples_is_refused(folder: Path) -> None:
    with pytest.raises(TrialError, match="no file for each sample"):
        tried(packed_files.TOGGLE, DataLoader(Files(folder, "one"), batch_size=8))


@pytest.mark.parametrize("sizes", [(0, 10, 16_384, 16_385, 70_000), (0, 0)])
def test_parts_of_any_size_are_the_bytes_of_their_files(
    tmp_path: Path, sizes: tuple[int, ...]
) -> None:
    wanted = {str(tmp_path / f"{n}.bin"): os.urandom(size) for n, size in enumerate(sizes)}
    for path, data in wanted.items():
        Path(path).write_bytes(data)
    target = str(tmp_path / "pack")
    make_pack([str(tmp_path)], {".bin"}, target, Limits(1000, 1 << 30, 30))
    pack = Pack(target)
    for path, data in wanted.items():
        with pack.opened(path, "rb", -1) as file:
            assert (file.read(), file.name) == (data, path)
    os.close(pack._fd)  # it stays open otherwise, as in a trial's child, which ends


def test_packing_stops_at_its_limits(folder: Path, tmp_path: Path) -> None:
    target = str(tmp_path / "pack")
    for limits, text in (
        (Limits(10, 1 << 30, 30), "too much"),
        (Limits(1000, 9_000, 30), "too much"),
        (Limits(1000, 1 << 30, 0), "longer than"),
    ):
        assert text in make_pack([str(folder)], {".bin"}, target, limits)[1]
    assert make_pack([str(folder)], {".bin"}, target, Limits(1000, 1 << 30, 30)) == (FILES, "")


@pytest.mark.parametrize("way", ["pieces", "lines_unbuffered"])
def test_tiny_reads_get_a_buffer(folder: Path, way: str) -> None:
    found = tried(buffered_open.TOGGLE, DataLoader(Files(folder, way), batch_size=8))
    assert found.same
    assert found.spec.in_child == (BufferedOpen(),)
    compiles(buffered_open.TOGGLE, found.spec)


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("whole", "goes without a buffer"),
        ("unbuffered", "there is nothing to gather"),
        ("kept", "goes without a buffer"),
    ],
)
def test_other_reads_are_left_alone(folder: Path, way: str, reason: str) -> None:
    dataset = Files(folder, way)
    if way == "kept":
        dataset.way = "whole"
    with pytest.raises(TrialError, match=reason):
        tried(buffered_open.TOGGLE, DataLoader(dataset, batch_size=8))


@pytest.mark.parametrize(("way", "toggle"), [("pieces", "buffered_open")])
def test_it_is_found_faster(folder: Path, way: str, toggle: str) -> None:
    found = compare(DataLoader(Files(folder, way), batch_size=8), toggles=[toggle], budget_s=90)
    assert found.same_data.verdict == "identical"
    assert found.verdict == "faster"
    assert found.ratio > 1.5


def test_local_files_are_not_copied(folder: Path) -> None:
    with pytest.raises(TrialError, match="on a local disk already"):
        tried(local_copy.TOGGLE, DataLoader(Files(folder, "whole"), batch_size=8))


def as_network(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have `folder` look like a mount of its own."""
    real = filesystems.of_path

    def of_path(path: str, *rest: Any) -> Any:
        from dataclasses import replace

        found = real(path, *rest)
        if path.startswith(str(folder)):
            return replace(found, family="network", name="NFS 4.2", mount_point=str(folder))
        return found

    monkeypatch.setattr(filesystems, "of_path", of_path)


@pytest.mark.parametrize("way", ["whole", "lines", "library"])
def test_files_of_a_network_are_copied_once(
    folder: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_network(folder, monkeypatch)
    found = tried(local_copy.TOGGLE, DataLoader(Files(folder, way), batch_size=8))
    assert found.same
    change = found.spec.in_child[0]
    assert isinstance(change, LocalCopies)
    assert change.roots == (str(folder),)
    assert not os.path.exists(change.folder)
    compiles(local_copy.TOGGLE, found.spec)


def test_what_does_not_fit_is_not_copied(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_network(folder, monkeypatch)
    monkeypatch.setattr(local_copy, "free_bytes", lambda folder: 100_000)
    with pytest.raises(TrialError, match=r"the files take about 48\d.kB"):
        tried(local_copy.TOGGLE, DataLoader(Files(folder, "whole"), batch_size=8))


@pytest.mark.skipif(slow.why_not() != "", reason=slow.why_not() or "FUSE works")
def test_copies_of_a_slow_mount_are_found_faster(folder: Path) -> None:
    with slow.slow_mount(folder, read_s=0.004) as point:
        loader = DataLoader(Files(point, "whole"), batch_size=8)
        found = compare(loader, toggles=["local_copy"], budget_s=90)
    assert found.same_data.verdict == "identical"
    assert found.verdict == "faster"
    assert found.ratio > 2
