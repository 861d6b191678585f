"""Healthy loaders that read files: once opened, in time for the step, out of the page cache."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset

from tests.accuracy.loader import Items
from tests.accuracy.loaders_healthy import Healthy
from tests.accuracy.loaders_items import save_pictures


class PicturesInTime(Healthy):
    """Two workers decode pictures faster than the step takes them."""

    seconds = 0.06

    def make_loader(self) -> DataLoader[Any]:
        from PIL import Image

        folder = self.shared("thumbnails", lambda path: save_pictures(path, 10, (160, 120), "jpg"))

        def get(index: int) -> Any:
            with Image.open(folder / f"{index % 10}.jpg") as picture:
                return torch.from_numpy(np.asarray(picture.convert("RGB")).copy())

        return DataLoader(Items(320, get), batch_size=8, num_workers=2)


class PlaceWithEveryRead(Healthy):
    """A file that was opened before the fork, read by calls that carry their own place."""

    def prepare(self) -> None:
        path = self.folder / "records"
        path.write_bytes(bytes(range(256)) * 6_400)
        self.file = os.open(path, os.O_RDONLY)

    def make_loader(self) -> DataLoader[Any]:
        def get(index: int) -> Any:
            record = os.pread(self.file, 2048, index * 2048)
            return torch.frombuffer(bytearray(record), dtype=torch.uint8)

        return DataLoader(Items(800, get), batch_size=8, num_workers=2)

    def clean_up(self) -> None:
        os.close(self.file)
        super().clean_up()


class OwnHandles(Healthy):
    """Each worker opens the file for itself, then seeks and reads."""

    def make_loader(self) -> DataLoader[Any]:
        path = self.folder / "records"
        path.write_bytes(bytes(range(256)) * 6_400)
        files: dict[int, Any] = {}

        def get(index: int) -> Any:
            if os.getpid() not in files:
                files[os.getpid()] = open(path, "rb")  # noqa: SIM115  # kept by the worker
            files[os.getpid()].seek(index * 2048)
            return torch.frombuffer(bytearray(files[os.getpid()].read(2048)), dtype=torch.uint8)

        return DataLoader(Items(800, get), batch_size=8, num_workers=2)


class RowsFromHdf5(Healthy):
    """Opened once, read in its order."""

    def make_loader(self) -> DataLoader[Any]:
        import h5py

        def build(path: Path) -> None:
            with h5py.File(path / "set.h5", "w") as file:
                file.create_dataset("x", data=np.zeros((800, 128), np.float32), chunks=(16, 128))

        table = h5py.File(self.shared("rows", build) / "set.h5", "r")["x"]
        return DataLoader(Items(800, lambda index: torch.from_numpy(table[index])), batch_size=10)


class MappedArray(Healthy):
    """A memory map that is in the page cache, rows at random."""

    def make_loader(self) -> DataLoader[Any]:
        def build(path: Path) -> None:
            np.save(path / "x.npy", np.zeros((20_000, 256), np.float32))

        rows = np.load(self.shared("mapped", build) / "x.npy", mmap_mode="r")
        data = Items(20_000, lambda index: torch.from_numpy(np.array(rows[index])))
        return DataLoader(data, batch_size=250, shuffle=True)


class LinesOfFile(Healthy):
    """Lines of one text file, in their order."""

    def make_loader(self) -> DataLoader[Any]:
        def build(path: Path) -> None:
            (path / "lines.txt").write_text("".join(f"{i} {i * i}\n" for i in range(640)))

        path = self.shared("lines", build) / "lines.txt"

        class Lines(IterableDataset[Any]):
            def __iter__(self) -> Iterator[Any]:
                with open(path) as file:
                    for line in file:
                        yield torch.tensor([int(word) for word in line.split()])

        return DataLoader(Lines(), batch_size=8)


class RecordsOfEnvironment(Healthy):
    """Records of one file through `os.pread`, opened once a worker, in the page cache."""

    def make_loader(self) -> DataLoader[Any]:
        def build(path: Path) -> None:
            (path / "records").write_bytes(bytes(4096) * 400)

        path = self.shared("records", build) / "records"
        opened: dict[int, int] = {}

        def get(index: int) -> Any:
            if os.getpid() not in opened:
                opened[os.getpid()] = os.open(path, os.O_RDONLY)
            content = os.pread(opened[os.getpid()], 4096, index * 4096)
            return torch.frombuffer(bytearray(content), dtype=torch.uint8)

        return DataLoader(Items(400, get), batch_size=8, num_workers=2)
