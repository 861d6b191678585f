"""Troubles with workers: too few, too many, idle, started again, in each other's way."""

from __future__ import annotations

import fcntl
import hashlib
import sys
import threading
import time
import types
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info

from tests.accuracy.loader import NO_STEPS, STEPS_BESIDE, TINY, Items, Loader, compute


class Waits(Loader):
    """Each item asks a service that answers after 5 ms, one after the other."""

    causes = ("no_workers_latency_bound",)
    advice = ("workers",)

    def make_loader(self) -> DataLoader[Any]:
        class Stream(IterableDataset[Any]):
            def __iter__(self) -> Iterator[Any]:
                for _ in range(240):
                    time.sleep(0.005)
                    yield TINY

        return DataLoader(Stream(), batch_size=8)


class Computes(Loader):
    """Each item costs CPU in compiled code, and one process does it all."""

    causes = ("no_workers_cpu_bound", "decode_cpu")
    advice = ("workers",)

    def make_loader(self) -> DataLoader[Any]:
        packed = zlib.compress(np.random.default_rng(0).integers(0, 9, 300_000).tobytes(), 1)

        def get(index: int) -> Any:
            return torch.frombuffer(bytearray(zlib.decompress(packed)[:64]), dtype=torch.uint8)

        return DataLoader(Items(240, get), batch_size=8)


class Crowd(Loader):
    """Many more workers than cores, all computing."""

    causes = ("too_many_workers",)
    advice = ("workers",)
    severities = ("severe", "clear")
    steps = STEPS_BESIDE

    def make_loader(self) -> DataLoader[Any]:
        def get(index: int) -> Any:
            compute(0.002)
            return TINY

        return DataLoader(Items(800, get), batch_size=4, num_workers=12)


class WorkersForTables(Loader):
    """Two workers ship rows of a table that is in memory anyway."""

    causes = ("workers_overhead",)
    advice = ("num_workers=0", "without workers", "no workers")
    EPOCHS = 1

    def make_loader(self) -> DataLoader[Any]:
        table = TensorDataset(torch.arange(40_000.0).reshape(-1, 4))
        return DataLoader(table, batch_size=8, num_workers=2)


class ShortEpochs(Loader):
    """Workers that load something at their start, started anew for each short epoch."""

    causes = ("worker_restart_per_epoch",)
    advice = ("persistent_workers",)
    EPOCHS = 8

    def make_loader(self) -> DataLoader[Any]:
        def begin(worker: int) -> None:
            compute(0.03)

        data = Items(48, lambda index: TINY)
        return DataLoader(data, batch_size=8, num_workers=2, worker_init_fn=begin)


class ThreadsInWorkers(Loader):
    """Every worker computes with eight threads on a machine of a few cores."""

    causes = ("thread_oversubscription",)
    advice = ("set_num_threads", "omp_num_threads", "one thread", "threads")
    steps = STEPS_BESIDE

    def make_loader(self) -> DataLoader[Any]:
        def begin(worker: int) -> None:
            torch.set_num_threads(8)

        def get(index: int) -> Any:
            square = torch.randn(180, 180)
            for _ in range(4):
                square = square @ square / 14
            return square[0]

        return DataLoader(Items(800, get), batch_size=4, num_workers=2, worker_init_fn=begin)


class HangsOnLock(Loader):
    """A thread held a lock when the workers were forked: they wait for it for ever."""

    causes = ("fork_deadlock",)
    severities = ("severe",)

    def prepare(self) -> None:
        self.lock, self.let_go = threading.Lock(), threading.Event()
        held = threading.Event()

        def hold() -> None:
            with self.lock:
                held.set()
                self.let_go.wait(60)

        threading.Thread(target=hold, daemon=True).start()
        held.wait(10)

    def make_loader(self) -> DataLoader[Any]:
        def get(index: int) -> Any:
            with self.lock:
                return TINY

        return DataLoader(Items(64, get), batch_size=8, num_workers=2, timeout=4)

    def clean_up(self) -> None:
        self.let_go.set()
        super().clean_up()


class OneHandle(Loader):
    """Two workers seek and read in a file that was opened before they were forked."""

    causes = ("fd_shared_after_fork",)
    advice = ("worker_init_fn", "in the worker", "pread")
    severities = ("severe",)

    def prepare(self) -> None:
        self.path = self.folder / "records"
        self.path.write_bytes(bytes(range(256)) * 32_000)
        self.file = open(self.path, "rb")  # noqa: SIM115  # closed in clean_up

    def make_loader(self) -> DataLoader[Any]:
        def get(index: int) -> Any:
            self.file.seek(index * 2048)
            record = self.file.read(2048)
            compute(0.001)
            return torch.frombuffer(bytearray(record.ljust(2048)), dtype=torch.uint8)

        return DataLoader(Items(1_500, get), batch_size=10, num_workers=2)

    def clean_up(self) -> None:
        self.file.close()
        super().clean_up()


class Shards(IterableDataset[Any]):
    """Reads the shards that fall to this worker, 3 ms a row."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self.sizes = sizes

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        mine = self.sizes[info.id :: info.num_workers] if info else self.sizes
        for size in mine:
            for _ in range(size):
                time.sleep(0.003)
                yield TINY


class FewShards(Loader):
    """Two shards for five workers: three of them have nothing to read."""

    causes = ("shards_fewer_than_workers",)
    advice = ("shard",)
    steps = STEPS_BESIDE

    def make_loader(self) -> DataLoader[Any]:
        return DataLoader(Shards((480,)), batch_size=8, num_workers=3)


class UnevenShards(Loader):
    """One worker's shard is as long as all the others' together."""

    causes = ("uneven_shards",)
    advice = ("shard", "even", "balance")
    steps = STEPS_BESIDE

    def make_loader(self) -> DataLoader[Any]:
        return DataLoader(Shards((480, 48, 48)), batch_size=8, num_workers=3)


class SlowItems(Loader):
    """Now and then an item takes 30 times as long, and finished batches wait behind it."""

    causes = ("head_of_line_blocking",)
    advice = ("in_order=false", "prefetch")
    steps = NO_STEPS

    def make_loader(self) -> DataLoader[Any]:
        slow_s = (0.3, 0.22, 0.16)[self.level]

        def get(index: int) -> Any:
            time.sleep(slow_s if index * 7919 % 37 == 3 else 0.003)
            return TINY

        return DataLoader(Items(300, get), batch_size=2, num_workers=4)

    def consume(self, batch: Any) -> None:
        time.sleep(0.008)


class SameStreams(Loader):
    """Each of two workers goes over the whole stream."""

    causes = ("duplicated_across_workers",)
    advice = ("get_worker_info", "shard", "split")
    steps = STEPS_BESIDE

    def make_loader(self) -> DataLoader[Any]:
        class Stream(IterableDataset[Any]):
            def __iter__(self) -> Iterator[Any]:
                for index in range(700):
                    seed = str(index).encode()
                    for _ in range(900):
                        seed = hashlib.sha256(seed).digest()
                    yield torch.frombuffer(bytearray(seed), dtype=torch.uint8)

        return DataLoader(Stream(), batch_size=10, num_workers=2)


class ClassOfCell(Loader):
    """A data set whose class lives in the notebook, and workers that are spawned."""

    causes = ("not_importable_in_worker",)
    advice = ("module", "import", "fork")
    severities = ("severe",)

    def make_loader(self) -> DataLoader[Any]:
        def fill(namespace: dict[str, Any]) -> None:
            namespace["__module__"] = "__main__"
            namespace["__len__"] = lambda data: 64
            namespace["__getitem__"] = lambda data, index: TINY

        kind = types.new_class("Mine", (Dataset,), exec_body=fill)
        sys.modules["__main__"].Mine = kind  # type: ignore[attr-defined]
        context = "spawn"
        return DataLoader(kind(), batch_size=8, num_workers=2, multiprocessing_context=context)


class OneThread(Loader):
    """The library was told to use one thread, and there are no workers."""

    causes = ("native_threads_off", "no_workers_cpu_bound")
    advice = ("thread", "workers")
    severities = ("severe", "clear")

    def prepare(self) -> None:
        torch.set_num_threads(1)
        self.filters = torch.randn(16, 3, 7, 7)

    def make_loader(self) -> DataLoader[Any]:
        def get(index: int) -> Any:
            image = torch.full((1, 3, 224, 224), float(index))
            return torch.nn.functional.conv2d(image, self.filters)[0, :, 0, 0]

        return DataLoader(Items(100, get), batch_size=4)


class QueueForFile(Loader):
    """Workers lock a file for every item, and do their work while they hold it."""

    causes = ("lock_contention",)
    advice = ("lock",)
    steps = STEPS_BESIDE

    def make_loader(self) -> DataLoader[Any]:
        path = Path(self.folder) / "lock"
        path.touch()

        def get(index: int) -> Any:
            with open(path) as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                compute(0.0025)
            return TINY

        return DataLoader(Items(480, get), batch_size=4, num_workers=4)


class ThreadsUnderGil(Loader):
    """Threads that run pure Python make a batch: one runs at a time."""

    causes = ("gil_bound_threads",)
    advice = ("process", "workers")

    def make_loader(self) -> DataLoader[Any]:
        from concurrent.futures import ThreadPoolExecutor

        class Pooled(Dataset[Any]):
            pool = ThreadPoolExecutor(6)

            def __len__(self) -> int:
                return 480

            def one(self, index: int) -> Any:
                compute(0.0025)
                return TINY

            def __getitems__(self, indices: list[int]) -> list[Any]:
                return list(self.pool.map(self.one, indices))

        return DataLoader(Pooled(), batch_size=24)
