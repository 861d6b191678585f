"""CPU time that recording adds to one batch, in a worker and in the loop, without the rest.

The loops of a worker and of a loader are run in this process, with queues that cost nothing and
samples of two numbers; short stretches with and without records take turns. Each is a few
milliseconds long, so that other programs seldom fall into one: unlike the ratios of `slowdown.py`
this can be read on a busy machine.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch.autograd.profiler
from torch.utils.data import DataLoader, dataloader, default_collate
from torch.utils.data._utils import fetch as torch_fetch
from torch.utils.data._utils import worker as torch_worker

from jupyter_ioscope.capture.loaders import torch_dataloader
from jupyter_ioscope.capture.loaders._loader import WorkerSettings
from jupyter_ioscope.capture.loaders._torch_worker import RecordedWorkerLoop
from jupyter_ioscope.capture.observers import _observer
from jupyter_ioscope.capture.patching import Patches
from jupyter_ioscope.capture.recorder import Recorder
from tests.bench.measure import print_result
from tests.bench.workloads import TinyTensors

torch_profiler: Any = torch.autograd.profiler
torch_iterator: Any = dataloader._BaseDataLoaderIter

BATCHES = 200  # of one stretch
ROUNDS, QUICK_ROUNDS = 200, 40


class Queue:
    """Gives tasks of four samples and forgets batches."""

    def __init__(self) -> None:
        self.task = 0

    def get(self, timeout: float | None = None) -> tuple[int, list[int]]:
        self.task += 1
        return self.task, [0, 1, 2, 3]

    def put(self, item: Any) -> None: ...


class Delivered(torch_iterator):  # type: ignore[misc]
    """A loader's iterator whose batches are there."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._num_workers, self._in_order, self._workers = 2, True, ()
        self._sampler_iter, self._num_yielded, self._dataset_kind = iter(()), 0, 0
        self._IterableDataset_len_called, self._rcvd_idx = None, 0
        self._profile_name = f"next of {id(self)}"  # a new string, as torch makes it
        self._dataset, self._index_sampler = None, loader._index_sampler
        self._persistent_workers = self._pin_memory = False
        self._collate_fn = loader.collate_fn

    def _next_data(self) -> int:
        self._rcvd_idx += 1
        return 0


def measure(quick: bool) -> dict[str, Any]:
    rounds = QUICK_ROUNDS if quick else ROUNDS
    with tempfile.TemporaryDirectory(prefix="ioscope-bench-") as folder:
        return {"worker_us": in_a_worker(folder, rounds), "loop_us": in_the_loop(folder, rounds)}


def in_a_worker(folder: str, rounds: int) -> list[float]:
    """[without records, added], microseconds of CPU a batch."""

    def fetcher() -> Any:
        return torch_fetch._MapDatasetFetcher(TinyTensors(1000), True, default_collate, False)

    given = dict.fromkeys(torch_worker._worker_loop.__code__.co_varnames[:14])
    queues = {"index_queue": Queue(), "data_queue": Queue()}
    loop = RecordedWorkerLoop(WorkerSettings(folder), torch_worker._worker_loop, torch_fetch)
    plain = fetcher()
    with contextlib.ExitStack() as stack:
        observers = _observer.all_observers
        stack.callback(setattr, _observer, "all_observers", observers)
        _observer.all_observers = lambda: ()  # type: ignore[assignment]
        _, kept = loop._recorded(
            torch_worker._worker_loop,
            (),
            {**given, **queues, "worker_id": 0, "dataset_kind": 0},
            stack,
        )
        recorded = fetcher()
        return added(
            lambda: stretch(queues["index_queue"], queues["data_queue"], plain),
            lambda: stretch(kept["index_queue"], kept["data_queue"], recorded),
            rounds,
        )


def stretch(index_queue: Any, data_queue: Any, fetcher: Any) -> None:
    """What torch's loop does, for some batches."""
    for _ in range(BATCHES):
        task, index = index_queue.get(timeout=5)
        data_queue.put((task, fetcher.fetch(index)))


def in_the_loop(folder: str, rounds: int) -> list[float]:
    """[without records, added], microseconds of CPU a batch."""
    patches = Patches()
    torch_dataloader.LOADER.install(Recorder(folder), patches, WorkerSettings(folder))
    recording = torch_profiler.record_function
    loader = DataLoader(TinyTensors(1000), batch_size=4, num_workers=2)
    _ = loader.__iter__  # looked up: an epoch begins, of the iterator that comes next
    patches.undo()
    as_it_was = torch_profiler.record_function
    plain, recorded = Delivered(loader), Delivered(loader)

    def with_records() -> None:
        torch_profiler.record_function = recording
        try:
            for _ in range(BATCHES):
                next(recorded)
        finally:
            torch_profiler.record_function = as_it_was

    def without() -> None:
        for _ in range(BATCHES):
            next(plain)

    return added(without, with_records, rounds)


def added(plain: Callable[[], None], recorded: Callable[[], None], rounds: int) -> list[float]:
    """Means of the lower quarter of each: the stretches into which nothing else fell."""
    taken: list[list[float]] = [[], []]
    for _ in range(rounds):
        for times, run in zip(taken, (plain, recorded), strict=True):
            start_ns = time.thread_time_ns()
            run()
            times.append((time.thread_time_ns() - start_ns) / BATCHES / 1e3)
    quarter = rounds // 4
    without, with_records = (sum(sorted(times)[:quarter]) / quarter for times in taken)
    return [without, with_records - without]


if __name__ == "__main__":
    print_result(measure, __doc__)
