"""Troubles with files, devices and the network, made by tests/io_causes."""

from __future__ import annotations

import contextlib
import http.client
import mmap
import os
import random
import threading
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from tests.accuracy.loader import STEPS_BESIDE, CannotRun, Items, Loader
from tests.io_causes import cold_files, slow_mount, throttled
from tests.io_causes.orphan import orphan
from tests.io_causes.slow_server import slow_server


class Beside(Loader):
    """A loader with something that runs beside it."""

    def __init__(self, severity: str, step_s: float = 0.0) -> None:
        super().__init__(severity, step_s)
        self.stack = contextlib.ExitStack()

    def clean_up(self) -> None:
        self.stack.close()
        super().clean_up()

    def mounted(self, folder: Path, **how: Any) -> Path:
        reason = slow_mount.why_not()
        if reason:
            raise CannotRun(reason)
        return self.stack.enter_context(slow_mount.slow_mount(folder, **how))


def sparse_file(folder: Path) -> None:
    """1 GB of nothing, which takes no space."""
    with open(folder / "data", "wb") as file:
        file.truncate(1 << 30)


class SlowReads(Beside):
    """Every read of a remote folder's file takes 4 ms, for two workers."""

    causes = ("disk_latency", "network_latency")
    advice = ("workers", "prefetch", "local", "larger", "cache")
    steps = STEPS_BESIDE

    def prepare(self) -> None:
        self.path = self.mounted(self.shared("sparse", sparse_file), read_s=0.004) / "data"

    def make_loader(self) -> DataLoader[Any]:
        opened: dict[int, int] = {}

        def get(index: int) -> Any:
            file = opened.setdefault(os.getpid(), -1)
            if file < 0:
                file = opened[os.getpid()] = os.open(self.path, os.O_RDONLY)
            return torch.frombuffer(bytearray(os.pread(file, 4096, index << 16)), dtype=torch.uint8)

        return DataLoader(Items(480, get), batch_size=8, num_workers=2)


class SlowMap(Beside):
    """A memory map of a file whose pages come late."""

    causes = ("page_fault_io",)
    advice = ("read", "sequential", "order", "workers", "larger", "local")
    steps = STEPS_BESIDE

    def prepare(self) -> None:
        folder = self.shared("sparse", sparse_file)
        self.path = self.mounted(folder, read_s=0.004, cached=True) / "data"

    def make_loader(self) -> DataLoader[Any]:
        maps: dict[int, mmap.mmap] = {}

        def get(index: int) -> Any:  # far from each other: the kernel reads ahead
            if os.getpid() not in maps:
                with open(self.path, "rb") as file:
                    maps[os.getpid()] = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
            at = (index * 7919 % 1000) << 20
            return torch.frombuffer(bytearray(maps[os.getpid()][at : at + 4096]), dtype=torch.uint8)

        return DataLoader(Items(480, get), batch_size=4, num_workers=2)


class SlowFolder(Beside):
    """A remote folder of small files: each is found, opened and read, one after the other."""

    causes = ("many_small_files",)
    advice = ("shard", "pack", "archive", "one file", "larger", "fewer")

    def prepare(self) -> None:
        def build(path: Path) -> None:
            for number in range(400):
                np.save(path / f"{number}.npy", np.arange(64))

        folder = self.shared("small files", build)
        self.files = self.mounted(folder, look_up_s=0.0015, read_s=0.0005)

    def make_loader(self) -> DataLoader[Any]:
        def get(index: int) -> Any:
            return torch.from_numpy(np.load(self.files / f"{index}.npy"))

        return DataLoader(Items(400, get), batch_size=8)


class ColdFolder(Loader):
    """Thousands of small files on a disk, none of them in the page cache."""

    causes = ("many_small_files",)
    advice = ("shard", "pack", "archive", "one file", "larger", "fewer")
    severities = ("severe", "clear")

    def prepare(self) -> None:
        def build(path: Path) -> None:
            for number in range(3000):
                (path / f"{number}.bin").write_bytes(os.urandom(2048))
            os.sync()

        self.files = self.shared("cold files", build)
        cold_files.evict(self.files.iterdir())

    def make_loader(self) -> DataLoader[Any]:
        def get(index: int) -> Any:
            return torch.frombuffer(
                bytearray((self.files / f"{index}.bin").read_bytes()), dtype=torch.uint8
            )

        return DataLoader(Items(3000, get), batch_size=50)


class OpensArchive(Loader):
    """A ZIP file is opened, and its directory read, for every item."""

    causes = ("reopen_per_item",)
    advice = ("once", "keep", "open it")

    def prepare(self) -> None:
        def build(path: Path) -> None:
            with zipfile.ZipFile(path / "set.zip", "w") as archive:
                for number in range(1500):
                    archive.writestr(f"items/{number:05d}.bin", os.urandom(512))

        self.path = self.shared("archive", build) / "set.zip"

    def make_loader(self) -> DataLoader[Any]:
        def get(index: int) -> Any:
            with zipfile.ZipFile(self.path) as archive:
                content = archive.read(f"items/{index:05d}.bin")
            return torch.frombuffer(bytearray(content), dtype=torch.uint8)

        return DataLoader(Items(120, get), batch_size=4)


class WholeChunks(Loader):
    """One row at a time from HDF5 chunks of thousands: each is unpacked for its one row."""

    causes = ("read_amplification",)
    advice = ("chunk", "order", "contiguous", "block")

    def prepare(self) -> None:
        def build(path: Path) -> None:
            import h5py

            rows = np.random.default_rng(0).integers(0, 50, (12_000, 256)).astype(np.int32)
            with h5py.File(path / "set.h5", "w") as file:
                file.create_dataset("x", data=rows, chunks=(2000, 256), compression="gzip")

        self.path = self.shared("chunks", build) / "set.h5"

    def make_loader(self) -> DataLoader[Any]:
        import h5py

        table = h5py.File(self.path, "r")["x"]
        order = np.random.default_rng(1).permutation(len(table))

        def get(index: int) -> Any:
            return torch.from_numpy(table[order[index]])

        return DataLoader(Items(160, get), batch_size=4)


class SlowDevice(Beside):
    """A device that gives 40 MB a second, read in large blocks by two workers."""

    causes = ("disk_bandwidth",)
    advice = ("compress", "smaller", "faster", "local", "fewer bytes", "format", "cache")
    steps = STEPS_BESIDE

    def prepare(self) -> None:
        def build(path: Path) -> None:
            with open(path / "data", "wb") as file:
                for _ in range(128):
                    file.write(os.urandom(1 << 20))
                file.flush()
                os.fsync(file.fileno())

        folder = self.shared("blocks", build)
        reason = throttled.why_not(folder)
        if reason:
            raise CannotRun(reason)
        cold_files.evict([folder / "data"])
        self.path = folder / "data"
        self.stack.enter_context(throttled.throttled(folder, bytes_per_s=40 << 20))

    def make_loader(self) -> DataLoader[Any]:
        opened: dict[int, tuple[int, mmap.mmap]] = {}

        def get(index: int) -> Any:
            if os.getpid() not in opened:  # direct reads need aligned memory
                file = os.open(self.path, os.O_RDONLY | os.O_DIRECT)
                opened[os.getpid()] = file, mmap.mmap(-1, 1 << 20)
            file, buffer = opened[os.getpid()]
            os.preadv(file, [buffer], (index % 128) << 20)
            return torch.frombuffer(bytearray(buffer), dtype=torch.uint8)

        return DataLoader(Items(96, get), batch_size=2, num_workers=2)


class FewRequests(Beside):
    """A device that serves 250 small requests a second."""

    causes = ("disk_latency",)
    advice = ("workers", "prefetch", "local", "larger", "sequential", "cache")
    steps = STEPS_BESIDE

    def prepare(self) -> None:
        def build(path: Path) -> None:
            cold_files.write_through(path / "data", os.urandom(32 << 20))

        folder = self.shared("small blocks", build)
        reason = throttled.why_not(folder)
        if reason:
            raise CannotRun(reason)
        self.path = folder / "data"
        cold_files.evict([self.path])
        self.stack.enter_context(throttled.throttled(folder, reads_per_s=250))

    def make_loader(self) -> DataLoader[Any]:
        opened: dict[int, tuple[int, mmap.mmap]] = {}

        def get(index: int) -> Any:
            if os.getpid() not in opened:
                file = os.open(self.path, os.O_RDONLY | os.O_DIRECT)
                opened[os.getpid()] = file, mmap.mmap(-1, 4096)
            file, buffer = opened[os.getpid()]
            os.preadv(file, [buffer], (index * 7919 % 8000) << 12)
            return torch.frombuffer(bytearray(buffer), dtype=torch.uint8)

        return DataLoader(Items(400, get), batch_size=4, num_workers=2)


class BetweenPages(Beside):
    """Records of 4 kB that begin in the middle of a page, on a device that gives 2 MB a second."""

    causes = ("read_amplification",)
    advice = ("4,096", "align", "page", "larger")
    severities = ("severe", "clear")
    steps = STEPS_BESIDE

    def prepare(self) -> None:
        def build(path: Path) -> None:
            cold_files.write_through(path / "data", os.urandom(32 << 20))

        folder = self.shared("between pages", build)
        reason = throttled.why_not(folder)
        if reason:
            raise CannotRun(reason)
        self.path = folder / "data"
        cold_files.evict([self.path])
        self.stack.enter_context(throttled.throttled(folder, bytes_per_s=2 << 20))

    def make_loader(self) -> DataLoader[Any]:
        opened: dict[int, int] = {}

        def get(index: int) -> Any:
            file = opened.get(os.getpid())
            if file is None:
                file = opened[os.getpid()] = os.open(self.path, os.O_RDONLY)
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
            record = os.pread(file, 4096, (index * 4096 * 7 + 2048) % (31 << 20))
            return torch.frombuffer(bytearray(record), dtype=torch.uint8)

        return DataLoader(Items(600, get), batch_size=6, num_workers=2)


class SlowStore(Beside):
    """Objects are asked for over HTTP, each answered after 6 ms, by two workers."""

    causes = ("network_latency",)
    advice = ("workers", "prefetch", "local", "larger", "parallel", "shard")
    steps = STEPS_BESIDE

    def prepare(self) -> None:
        self.address = self.stack.enter_context(slow_server(0.006, 2048))

    def make_loader(self) -> DataLoader[Any]:
        mine = threading.local()

        def get(index: int) -> Any:
            if getattr(mine, "pid", 0) != os.getpid():
                mine.pid = os.getpid()
                mine.connection = http.client.HTTPConnection(*self.address)
            mine.connection.request("GET", f"/{index}")
            content = mine.connection.getresponse().read()
            return torch.frombuffer(bytearray(content), dtype=torch.uint8)

        return DataLoader(Items(400, get), batch_size=8, num_workers=2)


class BusyNeighbour(Beside):
    """Somebody else writes to the disk as fast as it takes it."""

    causes = ("noisy_neighbour",)
    advice = ("other", "elsewhere", "somebody", "else")
    severities = ("severe",)

    def prepare(self) -> None:
        def build(path: Path) -> None:
            cold_files.write_through(path / "data", os.urandom(64 << 20))

        self.path = self.shared("beside a neighbour", build) / "data"
        cold_files.evict([self.path])
        self.stack.enter_context(orphan("tests.io_causes.busy_disk", str(self.folder)))

    def make_loader(self) -> DataLoader[Any]:
        chosen = random.Random(0)
        file = os.open(self.path, os.O_RDONLY | os.O_DIRECT)
        buffer = mmap.mmap(-1, 1 << 16)

        def get(index: int) -> Any:
            os.preadv(file, [buffer], chosen.randrange(1000) << 16)
            return torch.frombuffer(bytearray(buffer), dtype=torch.uint8)

        return DataLoader(Items(800, get), batch_size=8)
