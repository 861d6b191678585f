"""Troubles with Hugging Face datasets."""

from __future__ import annotations

import functools
import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from tests.accuracy.loader import Items, Loader


def quiet() -> Any:
    import datasets

    datasets.disable_progress_bars()
    datasets.logging.set_verbosity_error()
    return datasets


class ScatteredRows(Loader):
    """A selection in random order: every batch is gathered through its indices."""

    causes = ("hf_indices_mapping",)
    advice = ("flatten_indices",)
    EPOCHS = 3

    def prepare(self) -> None:
        rng = np.random.default_rng(0)
        rows = 12_000
        words = [f"row {i} " * 20 for i in range(rows)]
        content = {"text": words, "ids": list(rng.integers(0, 99, (rows, 200)))}
        self.order = rng.permutation(rows)
        self.data = quiet().Dataset.from_dict(content)

    def make_loader(self) -> Any:
        chosen = self.data.select(self.order).with_format("arrow")

        class Batches:
            def __iter__(self) -> Iterator[Any]:
                return iter(chosen.iter(batch_size=100))

        return Batches()


class NestedLists(Loader):
    """Pictures kept as lists of lists of lists of numbers."""

    causes = ("hf_nested_list_features",)
    advice = ("array2d", "array3d", "arrayxd", "fixed")

    def prepare(self) -> None:
        pictures = np.random.default_rng(0).integers(0, 9, (300, 3, 32, 32)).tolist()
        self.data = quiet().Dataset.from_dict({"picture": pictures})

    def make_loader(self) -> DataLoader[Any]:
        return DataLoader(self.data.with_format("torch"), batch_size=16)


class ColumnsFirst(Loader):
    """Each item takes a column of the table and then one of its rows."""

    causes = ("hf_column_access",)
    advice = (
        "row first",
        "rows first",
        "ds[i]",
        "[i][",
        "row, then",
        "index the row",
        "select_columns",
    )

    def prepare(self) -> None:
        rng = np.random.default_rng(0)
        columns = {f"x{i}": rng.standard_normal(4000).astype(np.float32) for i in range(5)}
        self.data = quiet().Dataset.from_dict(columns).with_format("numpy")

    def make_loader(self) -> DataLoader[Any]:
        def get(index: int) -> Any:
            return torch.tensor([float(self.data[f"x{i}"][index]) for i in range(5)])

        return DataLoader(Items(1000, get), batch_size=25)


class UnusedPictures(Loader):
    """The label is used, and every access decodes the picture as well."""

    causes = ("hf_unused_decoded_column",)
    advice = ("select_columns", "remove_columns", "decode=false")

    def prepare(self) -> None:
        from PIL import Image

        datasets = quiet()
        rng = np.random.default_rng(0)
        small = Image.fromarray(rng.integers(0, 256, (20, 20, 3), dtype=np.uint8))
        made = io.BytesIO()
        small.resize((320, 240)).save(made, "PNG")
        rows = [{"bytes": made.getvalue(), "path": None}] * 500
        kinds = {"photo": datasets.Image(), "label": datasets.Value("int64")}
        features = datasets.Features(kinds)
        content = {"photo": rows, "label": list(range(500))}
        self.data = datasets.Dataset.from_dict(content, features=features)

    def make_loader(self) -> DataLoader[Any]:
        return DataLoader(Items(500, lambda index: self.data[index]["label"]), batch_size=20)


class PythonRows(Loader):
    """Signals come out as lists of numbers and are made arrays again."""

    causes = ("hf_python_object_rows",)
    advice = ("with_format", "set_format")

    def prepare(self) -> None:
        waves = np.random.default_rng(0).standard_normal((600, 5000)).astype(np.float32)
        self.data = quiet().Dataset.from_dict({"wave": list(waves)})

    def make_loader(self) -> DataLoader[Any]:
        def get(index: int) -> Any:
            return np.asarray(self.data[index]["wave"], dtype=np.float32)

        return DataLoader(Items(600, get), batch_size=10)


class FiltersRows(Loader):
    """A filter and a map that take a row at a time, before the first batch."""

    causes = ("hf_map_not_batched",)
    advice = ("batched=true", "batched")

    def prepare(self) -> None:
        texts = [f"some words and the number {i}" for i in range(12_000)]
        quiet().Dataset.from_dict({"text": texts}).save_to_disk(str(self.folder / "texts"))

    def make_loader(self) -> DataLoader[Any]:
        data = quiet().load_from_disk(str(self.folder / "texts"))
        data = data.filter(lambda row: len(row["text"]) > 20)
        data = data.map(lambda row: {"words": len(row["text"].split())})
        return DataLoader(data.select_columns("words").with_format("torch"), batch_size=400)


def halved(rows: dict[str, list[Any]], numbers: Iterator[int]) -> dict[str, list[Any]]:
    return {"y": [[sum(row) / 2, max(row), next(numbers) % 1] for row in rows["x"]]}


class NeverCached(Loader):
    """A transform that holds a generator: it has no fingerprint, and is computed in every run."""

    causes = ("hf_map_cache_miss",)
    advice = ("pickl", "fingerprint", "hash", "generator")

    def prepare(self) -> None:
        numbers = np.random.default_rng(0).standard_normal((12_000, 400)).astype(np.float32)
        quiet().Dataset.from_dict({"x": list(numbers)}).save_to_disk(str(self.folder / "numbers"))
        self.make_loader()  # the cell was run once before

    def make_loader(self) -> DataLoader[Any]:
        data = quiet().load_from_disk(str(self.folder / "numbers"))
        function = functools.partial(halved, numbers=(number for number in range(1_000_000)))
        data = data.map(function, batched=True, batch_size=500, remove_columns="x")
        return DataLoader(data.with_format("torch"), batch_size=400)


class ManyProcesses(Loader):
    """Four processes for a transform of a few hundred small rows."""

    causes = ("hf_map_numproc_overhead",)
    advice = ("num_proc",)
    severities = ("severe", "clear")

    def prepare(self) -> None:
        self.data = quiet().Dataset.from_dict({"x": list(range(800))})

    def make_loader(self) -> DataLoader[Any]:
        data = self.data.map(doubled, batched=True, num_proc=4)
        return DataLoader(data.with_format("torch"), batch_size=20)


def doubled(rows: dict[str, list[int]]) -> dict[str, list[int]]:
    return {"y": [2 * number for number in rows["x"]]}


class LargeBuffer(Loader):
    """A stream is shuffled through a buffer that takes most of it, decoded, before a batch."""

    causes = ("shuffle_buffer_fill",)
    advice = ("buffer", "shard")

    def make_loader(self) -> Any:
        def rows() -> Iterator[dict[str, Any]]:
            for number in range(600):
                time.sleep(0.002)
                yield {"x": number}

        stream = quiet().IterableDataset.from_generator(rows)
        return DataLoader(stream.shuffle(seed=0, buffer_size=500), batch_size=10)

    MAX_BATCHES = 10


class WholeTable(Loader):
    """The table is copied into memory to read a few rows of it."""

    causes = ("dataset_in_memory",)
    advice = ("keep_in_memory", "memory-map", "mmap", "memory map")
    severities = ("severe", "clear")
    MAX_BATCHES = 25

    def prepare(self) -> None:
        def build(path: Path) -> None:
            block = np.arange(500_000, dtype=np.int64)

            def rows() -> Iterator[dict[str, Any]]:
                for number in range(120):
                    yield {"block": block + number}

            made = quiet().Dataset.from_generator(
                rows, cache_dir=str(path / "cache"), writer_batch_size=16
            )
            made.save_to_disk(str(path / "table"))

        self.path = self.shared("large table", build) / "table"

    def make_loader(self) -> Any:
        data = quiet().load_from_disk(str(self.path), keep_in_memory=True)
        return data.with_format("numpy").iter(batch_size=1)
