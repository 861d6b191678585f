"""Fetches that come in their thousands: most are read by the clock alone, none is lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader, Dataset  # noqa: E402

from jupyter_ioscope.api import profile  # noqa: E402
from jupyter_ioscope.capture.loaders._torch_fetch import left_worker, worker_marks  # noqa: E402
from jupyter_ioscope.capture.loaders._torch_worker import _Tasks  # noqa: E402
from jupyter_ioscope.capture.records import (  # noqa: E402
    WorkerLog,
    read_worker_files,
    usage,
)
from jupyter_ioscope.model.records import Fetch  # noqa: E402

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[WorkerLog]:
    made = WorkerLog(str(tmp_path), worker=0, loader=0, epoch=0, created_ns=0)
    yield made
    left_worker()
    made.close()


def nothing() -> None: ...


def burn() -> None:
    until_ns = time.thread_time_ns() + 20_000_000
    while time.thread_time_ns() < until_ns:
        pass


def fetched(log: WorkerLog, folder: Path, works: list[Callable[[], None]]) -> list[Fetch]:
    tasks = _Tasks(log, iterable=False, keep=lambda _: None)
    for number, work in enumerate(works):
        tasks.came = (number, [1, 2, 3])
        marks = worker_marks()
        marks.start = time.monotonic_ns() if marks.light else usage()
        work()
        tasks.goes((number, [1, 2, 3]))
    (file,) = read_worker_files(str(folder))
    return [fetch for _, fetch in file.fetches]


def test_each_of_many_short_fetches_has_its_time_and_samples(
    log: WorkerLog, tmp_path: Path
) -> None:
    rows = fetched(log, tmp_path, [nothing] * 1_000)
    assert [row.task for row in rows] == list(range(1_000))
    assert {row.samples for row in rows} == {3}
    assert all(a.end_ns <= b.start_ns for a, b in pairwise(rows))
    assert {row.tensors for row in rows} == {3}


def test_a_long_fetch_among_short_ones_has_the_cpu_time_it_used(
    log: WorkerLog, tmp_path: Path
) -> None:
    waits = [nothing] * 10 + [lambda: time.sleep(0.1)]
    rows = fetched(log, tmp_path, [*waits, *[nothing] * 10, burn, *[nothing] * 10])
    slept, burnt = rows[10], rows[21]
    assert slept.fetch_ns >= 100_000_000
    assert slept.cpu_ns < slept.fetch_ns / 5
    assert slept.voluntary_switches >= 1
    assert burnt.cpu_ns >= 19_000_000
    assert all(row.cpu_ns <= row.fetch_ns + 1_000_000 for row in rows)


class Tiny(Dataset[int]):
    def __len__(self) -> int:
        return 2_000

    def __getitem__(self, index: int) -> int:
        return index


@pytest.mark.parametrize("persistent", [False, True])
def test_every_batch_of_a_loader_of_tiny_samples_has_its_fetch(persistent: bool) -> None:
    loader = DataLoader(Tiny(), batch_size=20, num_workers=2, persistent_workers=persistent)
    with profile(stacks=False) as recording:
        for _ in range(2):
            assert sum(int(batch.sum()) for batch in loader) == 1_999 * 1_000
    value = recording.profile
    assert value is not None
    assert len(value.batches) == len(value.fetches) == 200
    for epoch in range(2):
        rows = [row for row in value.fetches if row.epoch == epoch]
        assert sorted(row.task for row in rows) == list(range(100))
        assert sum(row.samples for row in rows) == 2_000
    assert sum(row.cpu_ns for row in value.fetches) > 0
