"""Real loaders that are slow for one reason each. Short: one or two seconds on two cores."""

from __future__ import annotations

import contextlib
import mmap
import multiprocessing
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.utils.data import DataLoader, Dataset

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
TINY = torch.zeros(4)


def compute(seconds: float) -> None:
    """Pure Python that uses `seconds` of this thread's CPU."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(300))


class Items(Dataset[Any]):
    """`count` items, each made by `get(index)`."""

    def __init__(self, count: int, get: Callable[[int], Any]) -> None:
        self.count = count
        self.get = get

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        return self.get(index)


class Case(NamedTuple):
    """A loader, what the loop does with a batch, and how often it goes over the loader."""

    loader: DataLoader[Any]
    step: Callable[[Any], None] = lambda batch: None
    epochs: int = 1


def computed(index: int) -> Any:
    compute(0.003)
    return TINY


def slept(index: int) -> Any:
    time.sleep(0.006)
    return TINY


def light(index: int) -> Any:
    compute(0.0003)
    return TINY


def cpu_in_workers(folder: Path) -> Case:
    return Case(DataLoader(Items(600, computed), batch_size=8, num_workers=2))


def cpu_without_workers(folder: Path) -> Case:
    return Case(DataLoader(Items(400, computed), batch_size=8))


def sleep_in_workers(folder: Path) -> Case:
    return Case(DataLoader(Items(480, slept), batch_size=8, num_workers=2))


def sleep_without_workers(folder: Path) -> Case:
    return Case(DataLoader(Items(240, slept), batch_size=8))


def heavy_step(folder: Path) -> Case:
    loader = DataLoader(Items(640, lambda index: TINY), batch_size=8, num_workers=2)
    return Case(loader, lambda batch: compute(0.015))


def many_tensors(folder: Path) -> Case:
    def get(index: int) -> Any:
        return {f"field {i}": TINY for i in range(150)}

    return Case(DataLoader(Items(320, get), batch_size=8, num_workers=2))


def crowded(folder: Path) -> Case:
    return Case(DataLoader(Items(1200, computed), batch_size=8, num_workers=5 * CORES))


def short_epochs(folder: Path) -> Case:
    return Case(DataLoader(Items(32, light), batch_size=8, num_workers=2), epochs=8)


def shared_lock(folder: Path) -> Case:
    lock = multiprocessing.get_context("fork").Lock()

    def get(index: int) -> Any:
        with lock:
            compute(0.002)
        return TINY

    return Case(DataLoader(Items(640, get), batch_size=8, num_workers=4))


def distant_server(folder: Path) -> Case:
    """Every item is asked for over a socket and answered after 6 ms."""
    local = threading.local()

    def get(index: int) -> Any:
        if getattr(local, "pid", 0) != os.getpid():
            local.pid, local.socket = os.getpid(), socket.create_connection(("127.0.0.1", port))
        local.socket.sendall(b"?")
        local.socket.recv(1)
        return TINY

    port = int((folder / "port").read_text())
    return Case(DataLoader(Items(400, get), batch_size=8, num_workers=2))


def background_threads(folder: Path) -> Case:
    return Case(DataLoader(Items(150, computed), batch_size=8))


def direct_reads(folder: Path) -> Case:
    """Eight reads of 256 kB an item that go past the page cache."""
    opened: dict[int, tuple[int, mmap.mmap]] = {}

    def get(index: int) -> Any:
        if os.getpid() not in opened:  # direct reads need aligned memory
            file = os.open(folder / "data", os.O_RDONLY | os.O_DIRECT)
            opened[os.getpid()] = file, mmap.mmap(-1, BLOCK_BYTES)
        file, buffer = opened[os.getpid()]
        for block in random.Random(index).choices(range(BLOCKS), k=8):
            os.preadv(file, [buffer], block * BLOCK_BYTES)
        return TINY

    return Case(DataLoader(Items(800, get), batch_size=8, num_workers=2))


def cold_memory_map(folder: Path) -> Case:
    """Reads through a memory map whose pages are not in the page cache. A page fault also brings
    the pages around it, as many as the device reads ahead: every item reads far from the others."""
    maps: dict[int, mmap.mmap] = {}
    stride = max(BLOCK_BYTES, 1024 * read_ahead_kb(folder / "data"))

    def get(index: int) -> Any:
        if os.getpid() not in maps:
            with open(folder / "data", "rb") as file:
                maps[os.getpid()] = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        maps[os.getpid()][index * 7919 % count * stride + stride // 2]
        return TINY

    count = min(600, BLOCKS * BLOCK_BYTES // stride)
    return Case(DataLoader(Items(count, get), batch_size=2, num_workers=1))


BLOCK_BYTES = 262_144
BLOCKS = 3200


def read_ahead_kb(path: Path) -> int:
    """What the device below `path` reads ahead; 0 where it does not say."""
    device = path.stat().st_dev
    folder = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    for name in ("queue/read_ahead_kb", "../queue/read_ahead_kb"):  # a disk, a partition
        with contextlib.suppress(OSError, ValueError):
            return int((folder / name).read_text())
    return 0


def make_data(folder: Path) -> None:
    """Write the file that the cold cases read (800 MB)."""
    block = os.urandom(BLOCK_BYTES)
    with open(folder / "data", "wb") as file:
        for _ in range(BLOCKS):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())


def evict(folder: Path) -> None:
    """Drop the file from the page cache."""
    with open(folder / "data", "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def blocked_over_cpu(items: Dataset[Any], seconds: float) -> float:
    """How much longer than it ran this thread was blocked while it read items (the kernel's
    accounting, without the profiler). Below 1 the disk is no limit: a cache lies behind it."""

    def times() -> tuple[int, int]:
        run, queue, _ = Path("/proc/thread-self/schedstat").read_text().split()
        return int(run), int(queue)

    started_ns, (run_ns, queue_ns) = time.monotonic_ns(), times()
    index = 0
    while time.monotonic_ns() < started_ns + seconds * 1e9:
        items[index]
        index += 1
    wall_ns, (run, queue) = time.monotonic_ns() - started_ns, times()
    return (wall_ns - (run - run_ns) - (queue - queue_ns)) / max(1, run - run_ns)


@contextlib.contextmanager
def busy_threads(folder: Path) -> Iterator[None]:
    """Two threads of this process that run Python all the time."""
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            sum(range(300))

    threads = [threading.Thread(target=work, name="user's thread") for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(10)


@contextlib.contextmanager
def server(folder: Path) -> Iterator[None]:
    """Answers every byte after 6 ms, each connection in a thread of its own."""
    listener = socket.create_server(("127.0.0.1", 0))
    (folder / "port").write_text(str(listener.getsockname()[1]))
    threads: list[threading.Thread] = []

    def answer(connection: socket.socket) -> None:
        with connection:
            while connection.recv(1):
                time.sleep(0.006)
                connection.sendall(b"!")

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threads.append(threading.Thread(target=answer, args=(connection,), daemon=True))
                threads[-1].start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in (accepting, *threads):
            thread.join(10)


@contextlib.contextmanager
def nothing_beside(folder: Path) -> Iterator[None]:
    yield


class Single(NamedTuple):
    """How to make a case, what its verdict must be, and what has to run beside it."""

    make: Callable[[Path], Case]
    causes: tuple[str, ...]
    resource: str
    beside: Callable[[Path], AbstractContextManager[None]] = nothing_beside
    cold: bool = False


SINGLE = {
    "cpu in workers": Single(cpu_in_workers, ("decode_cpu",), "worker_cpu"),
    "cpu without workers": Single(
        cpu_without_workers, ("no_workers_cpu_bound", "decode_cpu"), "main_cpu"
    ),
    "sleep in workers": Single(sleep_in_workers, ("no_workers_latency_bound",), "sleep"),
    "sleep without workers": Single(sleep_without_workers, ("no_workers_latency_bound",), "sleep"),
    "heavy step": Single(heavy_step, ("not_loader_bound",), "consumer"),
    "many tensors": Single(many_tensors, ("ipc_many_tensors",), "hand_over"),
    "crowded cores": Single(crowded, ("too_many_workers",), "run_queue"),
    "short epochs": Single(short_epochs, ("worker_restart_per_epoch",), "start_up"),
    "shared lock": Single(shared_lock, ("lock_contention",), "lock"),
    "distant server": Single(distant_server, ("network_latency",), "network", server),
    "background threads": Single(background_threads, ("gil_bound_threads",), "gil", busy_threads),
    "direct reads": Single(direct_reads, ("disk_latency", "disk_bandwidth"), "disk", cold=True),
    "cold memory map": Single(cold_memory_map, ("page_fault_io",), "page_fault", cold=True),
}
