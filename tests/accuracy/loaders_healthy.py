"""Healthy loaders of many kinds: the step is the limit, and nothing must be found wrong.

The loader's own work is real, and small beside the step or done by workers in time.
"""

from __future__ import annotations

import csv
import json
import math
import random
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
)

from tests.accuracy.entries import HEALTHY
from tests.accuracy.loader import NO_STEPS, TINY, Items, Loader, compute
from tests.accuracy.loaders_hf import quiet


class Healthy(Loader):
    """The step takes 20 ms, waiting as for a device."""

    causes = (HEALTHY,)
    severities = ("",)
    steps = NO_STEPS
    seconds = 0.02

    def consume(self, batch: Any) -> None:
        time.sleep(self.seconds)


class DeviceAlone(Healthy):
    """No workers, next to no work, a device."""

    def make_loader(self) -> DataLoader[Any]:
        return DataLoader(Items(640, lambda index: TINY), batch_size=8)


class CoreAlone(Healthy):
    """No workers, a step in pure Python."""

    def make_loader(self) -> DataLoader[Any]:
        return DataLoader(Items(480, lambda index: TINY), batch_size=8)

    def consume(self, batch: Any) -> None:
        compute(0.02)


class MatrixStep(Healthy):
    """Two workers with little work, a step in native code."""

    def prepare(self) -> None:
        self.weights = torch.randn(600, 600)

    def make_loader(self) -> DataLoader[Any]:
        return DataLoader(Items(320, lambda index: TINY), batch_size=8, num_workers=2)

    def consume(self, batch: Any) -> None:
        square = self.weights
        for _ in range(6):
            square = square @ self.weights / 25


class TensorsInMemory(Healthy):
    def make_loader(self) -> DataLoader[Any]:
        table = TensorDataset(torch.randn(4000, 20), torch.randint(0, 2, (4000,)))
        return DataLoader(table, batch_size=64, shuffle=True)


class BatchesInMemory(Healthy):
    """Batches are sliced, not gathered; no batch is joined."""

    def make_loader(self) -> DataLoader[Any]:
        table = torch.randn(80, 64, 32)
        return DataLoader(Items(80, lambda index: table[index]), batch_size=None, shuffle=True)


class HfTensors(Healthy):
    """A Hugging Face dataset with a format that needs no Python objects."""

    def prepare(self) -> None:
        numbers = np.random.default_rng(0).standard_normal((2000, 64)).astype(np.float32)
        self.data = quiet().Dataset.from_dict({"x": list(numbers)}).with_format("torch")

    def make_loader(self) -> DataLoader[Any]:
        return DataLoader(self.data, batch_size=32)


class HfStream(Healthy):
    """A Hugging Face stream with a shard for each worker."""

    def prepare(self) -> None:
        numbers = {"x": list(range(2400))}
        self.data = quiet().Dataset.from_dict(numbers).to_iterable_dataset(num_shards=4)

    def make_loader(self) -> DataLoader[Any]:
        return DataLoader(self.data.with_format("torch"), batch_size=32, num_workers=2)


class HfMapped(Healthy):
    """A batched map that ran before."""

    def prepare(self) -> None:
        data = quiet().Dataset.from_dict({"x": list(range(2000))})
        self.data = data.map(lambda rows: {"y": [2 * x for x in rows["x"]]}, batched=True)

    def make_loader(self) -> DataLoader[Any]:
        return DataLoader(self.data.with_format("numpy"), batch_size=32)


class Sharded(Healthy):
    """A stream that each worker reads a part of."""

    def make_loader(self) -> DataLoader[Any]:
        class Stream(IterableDataset[Any]):
            def __iter__(self) -> Iterator[Any]:
                info = get_worker_info()
                for index in range(info.id if info else 0, 640, info.num_workers if info else 1):
                    yield torch.full((16,), float(index))

        return DataLoader(Stream(), batch_size=8, num_workers=2)


class KeptWorkers(Healthy):
    """Several epochs with the same workers."""

    EPOCHS = 4

    def make_loader(self) -> DataLoader[Any]:
        data = Items(160, lambda index: torch.full((16,), float(index)))
        return DataLoader(data, batch_size=8, num_workers=2, persistent_workers=True)


class UnevenSteps(Healthy):
    """Steps of 5 to 80 ms, as sequences of different length make them."""

    def prepare(self) -> None:
        self.chosen = random.Random(3)

    def make_loader(self) -> DataLoader[Any]:
        return DataLoader(Items(320, lambda index: TINY), batch_size=8, num_workers=2)

    def consume(self, batch: Any) -> None:
        time.sleep(self.chosen.choice((0.005, 0.02, 0.04, 0.08)))


class WaitsHidden(Healthy):
    """Items wait for a service, and enough workers do so at the same time."""

    seconds = 0.03

    def make_loader(self) -> DataLoader[Any]:
        def get(index: int) -> Any:
            time.sleep(0.004)
            return TINY

        return DataLoader(Items(400, get), batch_size=8, num_workers=4)


class FrameAsArray(Healthy):
    """A data frame, turned into an array once."""

    def make_loader(self) -> DataLoader[Any]:
        import pandas

        frame = pandas.DataFrame(np.zeros((1600, 8), np.float32))
        rows = torch.from_numpy(frame.to_numpy(copy=True))
        return DataLoader(TensorDataset(rows), batch_size=20)


class Weighted(Healthy):
    """Weighted sampling with replacement of a few thousand rows."""

    def make_loader(self) -> DataLoader[Any]:
        sampler = WeightedRandomSampler([1.0] * 3000, 800)
        return DataLoader(Items(3000, lambda index: TINY), batch_size=10, sampler=sampler)


class LittleJson(Healthy):
    """JSON is parsed for each item, which costs next to nothing of the loop."""

    def make_loader(self) -> DataLoader[Any]:
        text = json.dumps({"label": 3, "box": [1, 2, 3, 4]})
        data = Items(640, lambda index: torch.tensor(json.loads(text)["box"]))
        return DataLoader(data, batch_size=8)


class RareCheckpoints(Healthy):
    """A small checkpoint once in fifty steps."""

    def prepare(self) -> None:
        self.done, self.weights = 0, {"w": torch.randn(2000)}
        self.path = self.folder / "w.pt"

    def make_loader(self) -> DataLoader[Any]:
        return DataLoader(Items(800, lambda index: TINY), batch_size=8)

    def consume(self, batch: Any) -> None:
        super().consume(batch)
        self.done += 1
        if self.done % 50 == 0:
            torch.save(self.weights, self.path)


class RareLogs(Healthy):
    """A line in a file every ten steps."""

    def prepare(self) -> None:
        self.done = 0
        self.path = self.folder / "log.csv"

    def make_loader(self) -> DataLoader[Any]:
        return DataLoader(Items(640, lambda index: TINY), batch_size=8)

    def consume(self, batch: Any) -> None:
        super().consume(batch)
        self.done += 1
        if self.done % 10 == 0:
            with open(self.path, "a", newline="") as file:
                csv.writer(file).writerow([self.done, math.pi])


class WholeBatchAtOnce(Healthy):
    """Items of a batch are fetched together."""

    def make_loader(self) -> DataLoader[Any]:
        class Rows(Dataset[Any]):
            table = np.zeros((40_000, 16), np.float32)

            def __len__(self) -> int:
                return len(self.table)

            def __getitem__(self, index: int) -> Any:
                return self.table[index]

            def __getitems__(self, indices: list[int]) -> Any:
                return self.table[indices]

        data = Rows()
        return DataLoader(data, batch_size=512, shuffle=True, collate_fn=torch.from_numpy)


class TrainAndCheck(Healthy):
    """Two loaders in turn, as training and validation are."""

    EPOCHS = 2

    def make_loader(self) -> Any:
        train = DataLoader(Items(240, lambda index: TINY), batch_size=8, shuffle=True)
        check = DataLoader(Items(64, lambda index: TINY), batch_size=8)

        class Both:
            def __iter__(self) -> Iterator[Any]:
                yield from train
                yield from check

        return Both()


class OutOfOrder(Healthy):
    """Batches leave as they are ready; some items take longer."""

    seconds = 0.04

    def make_loader(self) -> DataLoader[Any]:
        def get(index: int) -> Any:
            time.sleep(0.03 if index % 40 == 7 else 0.001)
            return TINY

        return DataLoader(Items(240, get), batch_size=4, num_workers=2, in_order=False)


class OneThreadEach(Healthy):
    """Workers that compute with one native thread each, as they should."""

    seconds = 0.05

    def make_loader(self) -> DataLoader[Any]:
        def get(index: int) -> Any:
            image = torch.full((3, 64, 64), float(index))
            return torch.nn.functional.avg_pool2d(image, 4)

        def begin(worker: int) -> None:
            torch.set_num_threads(1)

        return DataLoader(Items(240, get), batch_size=8, num_workers=2, worker_init_fn=begin)
