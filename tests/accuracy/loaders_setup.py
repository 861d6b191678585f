"""Troubles before the first batch."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Sampler, WeightedRandomSampler

from tests.accuracy.loader import STEPS_BESIDE, TINY, Items, Loader, compute


class ReadsIndexFirst(Loader):
    """A long index is read, and a weight computed for each row, before the first batch."""

    causes = ("first_batch_setup",)
    advice = ("once", "cache", "before", "store")

    def prepare(self) -> None:
        def build(path: Path) -> None:
            with open(path / "index.csv", "w", newline="") as file:
                writer = csv.writer(file)
                writer.writerows((f"image-{i}.jpg", i % 17, i * 0.5) for i in range(800_000))

        self.index = self.shared("index", build) / "index.csv"

    def make_loader(self) -> DataLoader[Any]:
        with open(self.index, newline="") as file:
            labels = [int(row[1]) for row in csv.reader(file)]
        counts = {label: labels.count(label) for label in set(labels)}
        weights = [1 / counts[label] for label in labels]
        sampler = WeightedRandomSampler(weights, 800)
        return DataLoader(Items(len(labels), lambda index: TINY), batch_size=16, sampler=sampler)


class DrawsForEachBatch(Loader):
    """A batch sampler weighs all rows anew, and draws without replacement, for every batch."""

    causes = ("first_batch_setup",)
    advice = ("once", "slices")
    severities = ("severe", "clear")

    def make_loader(self) -> DataLoader[Any]:
        rows, draw = 1_000_000, np.random.default_rng(0)
        hardness = draw.random(rows)

        class Hard(Sampler[list[int]]):
            def __iter__(self) -> Iterator[list[int]]:
                for _ in range(120):
                    chance = hardness / hardness.sum()
                    yield draw.choice(rows, 32, replace=False, p=chance).tolist()

        return DataLoader(Items(rows, lambda index: TINY), batch_sampler=Hard(), num_workers=2)


class Notes:
    """Annotations as Python objects: what is sent to a spawned worker."""

    def __init__(self, rows: int) -> None:
        self.rows = [(f"clip-{i}", i % 30, [i, i + 1]) for i in range(rows)]

    def __len__(self) -> int:
        return 512

    def __getitem__(self, index: int) -> Any:
        return torch.tensor(self.rows[index][2])


class ShipsNotes(Loader):
    """Spawned workers get a pickle of everything before they begin."""

    causes = ("spawn_pickles_dataset",)
    advice = ("fork", "small", "array", "path", "persistent")
    severities = ("severe", "clear")

    def prepare(self) -> None:
        self.notes = Notes(400_000)

    def make_loader(self) -> DataLoader[Any]:
        data: Any = self.notes
        return DataLoader(data, batch_size=32, num_workers=2, multiprocessing_context="spawn")


class TouchesObjects(Loader):
    """Workers count references to a million Python objects, and so copy the pages they lie in."""

    causes = ("cow_python_objects",)
    advice = ("numpy", "array", "arrow", "tensor")
    severities = ("severe",)

    def prepare(self) -> None:
        self.notes = [{"id": i, "name": f"clip-{i}"} for i in range(700_000)]

    def make_loader(self) -> DataLoader[Any]:
        def get(index: int) -> Any:
            return self.notes[index]["id"]

        return DataLoader(Items(len(self.notes), get), batch_size=2000, num_workers=3)


class DeepQueues(Loader):
    """Sixty large batches wait in line for a step that needs one at a time."""

    causes = ("prefetch_memory",)
    advice = ("prefetch_factor",)
    severities = ("severe",)

    def make_loader(self) -> DataLoader[Any]:
        def get(index: int) -> Any:
            return torch.full((1_000_000,), float(index))

        data = Items(400, get)
        return DataLoader(data, batch_size=4, num_workers=2, prefetch_factor=30)

    def consume(self, batch: Any) -> None:
        compute(0.02)


class ManyTensors(Loader):
    """Each batch is a list of hundreds of small tensors."""

    causes = ("ipc_many_tensors",)
    advice = ("one tensor", "pad", "pack", "concat", "stack", "join")

    def make_loader(self) -> DataLoader[Any]:
        def get(index: int) -> Any:
            return {name: torch.full((index % 4 + 1,), 1.0) for name in "abcdef"}

        return DataLoader(Items(480, get), batch_size=16, num_workers=2, collate_fn=list)


class PythonObjects(Loader):
    """Each batch is a list of dictionaries of numbers and words, pickled by the workers."""

    causes = ("ipc_python_objects",)
    advice = ("tensor", "array")

    def make_loader(self) -> DataLoader[Any]:
        rows = [
            {"id": f"{i}-{j}", "box": (i, j, i + 1.5, j + 0.5), "tags": ["a", "b"]}
            for i in range(10)
            for j in range(40)
        ]
        columns = [[dict(row) for row in rows] for _ in range(4)]

        def get(index: int) -> Any:
            return columns[index % 4]

        return DataLoader(Items(800, get), batch_size=8, num_workers=2, collate_fn=list)


class WideNumbers(Loader):
    """Bytes become numbers of eight bytes before they are handed over."""

    causes = ("bytes_inflated",)
    steps = STEPS_BESIDE  # the workers do it, and go on during the step
    advice = ("uint8", "float32", "smaller", "convert after", "on the device", "cast")

    def make_loader(self) -> DataLoader[Any]:
        pictures = np.random.default_rng(0).integers(0, 256, (8, 3, 256, 256), dtype=np.uint8)

        def get(index: int) -> Any:
            return torch.from_numpy(pictures[index % 8]).double() / 255

        return DataLoader(Items(960, get), batch_size=16, num_workers=2)
