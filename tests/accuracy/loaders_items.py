"""Troubles in the code that makes an item or joins items into a batch."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from tests.accuracy.loader import STEPS_BESIDE, Items, Loader


class TinyItems(Loader):
    """Rows of four numbers, one call each, 1024 to a batch."""

    causes = ("per_sample_fetch",)
    advice = ("__getitems__", "batch_size=none", "batchsampler", "whole batch", "at once")

    def make_loader(self) -> DataLoader[Any]:
        class Rows(Dataset[Any]):
            table = np.arange(240_000, dtype=np.float32).reshape(-1, 4)

            def __len__(self) -> int:
                return len(self.table)

            def __getitem__(self, index: int) -> Any:
                return self.table[index]

        return DataLoader(Rows(), batch_size=1024)


class JoinsByLists(Loader):
    """Arrays become lists of numbers before they become a batch."""

    causes = ("slow_collate",)
    advice = ("stack", "from_numpy", "array")

    def make_loader(self) -> DataLoader[Any]:
        waves = np.random.default_rng(0).standard_normal((800, 3000)).astype(np.float32)

        def join(rows: list[Any]) -> Any:
            return torch.tensor([[float(number) for number in row] for row in rows])

        return DataLoader(Items(800, lambda index: waves[index]), batch_size=16, collate_fn=join)


class SameEachEpoch(Loader):
    """A costly transform without chance in it, again in every epoch."""

    causes = ("repeated_deterministic_transform",)
    advice = ("cache", "once", "store", "precompute")
    EPOCHS = 4

    def make_loader(self) -> DataLoader[Any]:
        def get(index: int) -> Any:
            wave = np.sin(np.arange(40_000) * (index + 1) * 1e-3)
            for _ in range(4):
                wave = np.abs(np.fft.ifft(np.fft.fft(wave) * 0.9))
            return torch.from_numpy(wave[:256])

        return DataLoader(Items(64, get), batch_size=8)


class RowsOfFrame(Loader):
    """A row of a data frame for every item."""

    causes = ("pandas_row_access",)
    advice = ("numpy", "to_numpy", "array", "once")

    def prepare(self) -> None:
        import pandas

        numbers = np.random.default_rng(0).standard_normal((9000, 12))
        self.frame = pandas.DataFrame(numbers, columns=[f"c{i}" for i in range(12)])
        self.frame["name"] = "x"

    def make_loader(self) -> DataLoader[Any]:
        columns = [f"c{i}" for i in range(12)]

        def get(index: int) -> Any:
            row = self.frame.iloc[index]
            return torch.tensor([float(row[name]) for name in columns])

        return DataLoader(Items(len(self.frame), get), batch_size=64)


def save_pictures(folder: Path, count: int, size: tuple[int, int], kind: str) -> None:
    from PIL import Image

    rng = np.random.default_rng(1)
    for number in range(count):
        small = Image.fromarray(rng.integers(0, 256, (24, 32, 3), dtype=np.uint8))
        picture = small.resize(size, Image.Resampling.BICUBIC)
        picture.save(folder / f"{number}.{kind}", quality=90)


class LargePhotos(Loader):
    """Photographs of 5 megapixels, of which 160 x 120 are used."""

    causes = ("oversized_decode",)
    advice = ("draft", "reduc", "resize", "smaller", "thumbnail")
    steps = STEPS_BESIDE

    def make_loader(self) -> DataLoader[Any]:
        from PIL import Image

        photos = self.shared("photos", lambda path: save_pictures(path, 6, (2592, 1944), "jpg"))

        def get(index: int) -> Any:
            with Image.open(photos / f"{index % 6}.jpg") as picture:
                return torch.from_numpy(
                    np.asarray(picture.convert("RGB").resize((160, 120))).copy()
                )

        return DataLoader(Items(64, get), batch_size=4, num_workers=2)


class Pictures(Loader):
    """Pictures as large as they are used, decoded by a worker for each core."""

    causes = ("decode_cpu",)
    advice = ("decode", "faster", "format", "decoder")
    steps = STEPS_BESIDE

    def make_loader(self) -> DataLoader[Any]:
        from PIL import Image

        folder = self.shared("pictures", lambda path: save_pictures(path, 12, (448, 336), "png"))

        def get(index: int) -> Any:
            with Image.open(folder / f"{index % 12}.png") as picture:
                return torch.from_numpy(np.asarray(picture.convert("RGB")).copy()).permute(2, 0, 1)

        return DataLoader(Items(320, get), batch_size=8, num_workers=2)


class TextTables(Loader):
    """Every item is a small table written as text."""

    causes = ("text_parse_per_item",)
    advice = ("binary", "npy", "parquet", "arrow", "once")

    def make_loader(self) -> DataLoader[Any]:
        rows = np.random.default_rng(0).standard_normal((30, 12))
        text = "\n".join(",".join(f"{number:.6f}" for number in row) for row in rows)

        def get(index: int) -> Any:
            return torch.from_numpy(np.loadtxt(io.StringIO(text), delimiter=","))

        return DataLoader(Items(3600, get), batch_size=40)


class XmlNotes(Loader):
    """Every item's boxes are read from a small XML document, by workers."""

    causes = ("text_parse_per_item",)
    advice = ("binary", "npy", "parquet", "arrow", "once")
    severities = ("severe", "clear")
    steps = STEPS_BESIDE

    def make_loader(self) -> DataLoader[Any]:
        from xml.etree import ElementTree

        box = "<object><name>x</name><xmin>1.5</xmin><ymin>2</ymin><xmax>33</xmax></object>"
        text = f"<annotation>{box * 120}</annotation>"

        def get(index: int) -> Any:
            found = ElementTree.fromstring(text).iter("object")
            return torch.tensor([[float(box.findtext("xmin", "0"))] for box in found])

        return DataLoader(Items(3600, get), batch_size=30, num_workers=2)
