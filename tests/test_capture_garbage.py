"""Pauses of the garbage collector: those that matter, wherever they happen."""

from __future__ import annotations

import gc
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader, Dataset  # noqa: E402

from jupyter_ioscope.api import profile  # noqa: E402
from jupyter_ioscope.capture.observers.garbage import Pauses  # noqa: E402

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
]


@pytest.fixture
def crowd() -> list[Any]:
    """So many objects that walking them takes far more than a millisecond."""
    return [[] for _ in range(300_000)]


class Collects(Dataset[Any]):
    """Every item walks all objects of its worker; one takes its worker down."""

    def __init__(self, kills: int = -1) -> None:
        self.crowd: list[Any] | None = None
        self.kills = kills

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> int:
        self.crowd = self.crowd or [[] for _ in range(300_000)]
        gc.collect()
        if index == self.kills:
            os.kill(os.getpid(), signal.SIGKILL)
        return index


def test_a_long_run_is_recorded_with_its_time(crowd: list[Any]) -> None:
    with profile(stacks=False) as p:
        gc.collect()
    value = p.profile
    assert value is not None
    longest = max(value.gc_pauses, key=lambda row: row.end_ns - row.start_ns)
    assert (longest.pid, longest.worker, longest.generation) == (os.getpid(), -1, 2)
    assert value.start_ns < longest.start_ns < longest.end_ns < value.end_ns
    assert all(row.end_ns - row.start_ns >= 1_000_000 for row in value.gc_pauses)


@pytest.mark.parametrize(("method", "workers"), [("fork", 2), ("spawn", 1)])
def test_runs_in_workers_are_recorded_once_each(method: str, workers: int) -> None:
    with profile(stacks=False) as p:
        list(DataLoader(Collects(), 1, num_workers=workers, multiprocessing_context=method))
    assert p.profile is not None
    full = [row for row in p.profile.gc_pauses if row.worker >= 0 and row.generation == 2]
    spans = {
        fetch.task: [
            row
            for row in full
            if row.pid == fetch.pid and fetch.start_ns < row.start_ns < fetch.end_ns
        ]
        for fetch in p.profile.fetches
    }
    assert len(spans) == 6
    assert {row.worker for row in full} == set(range(workers))
    # The interpreter may add full runs of its own to the one that each item asks for.
    assert all(rows for rows in spans.values())
    assert len({(row.pid, row.start_ns) for row in full}) == len(full)


# torch raises in its handler of a child's death, wherever the process is: also where exceptions
# are ignored.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_killed_worker_keeps_its_pauses() -> None:
    with (
        profile(stacks=False) as p,
        pytest.raises((RuntimeError, OSError, EOFError)),  # its last batch was being fetched
    ):
        list(DataLoader(Collects(kills=5), 1, num_workers=1, multiprocessing_context="fork"))
    assert p.profile is not None
    assert sum(row.worker == 0 and row.generation == 2 for row in p.profile.gc_pauses) >= 6


def test_the_users_callbacks_stay_and_ours_go(crowd: list[Any]) -> None:
    seen: list[str] = []

    def users(phase: str, info: dict[str, Any]) -> None:
        seen.append(phase)

    gc.callbacks.append(users)
    before = list(gc.callbacks)
    try:
        with profile(stacks=False):
            assert gc.callbacks[: len(before)] == before
            gc.collect()
        assert gc.callbacks == before
        assert seen[-2:] == ["start", "stop"]
        with profile(stacks=False):
            gc.callbacks.clear()  # the user may do so
        assert gc.callbacks == []
    finally:
        gc.callbacks[:] = [item for item in before if item is not users]


def test_it_works_where_the_collector_is_disabled(crowd: list[Any]) -> None:
    gc.disable()
    try:
        with profile(stacks=False) as p:
            gc.collect()
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert p.profile is not None
    assert p.profile.gc_pauses


def test_short_runs_and_a_missing_start_are_passed_over() -> None:
    kept: list[tuple[int, ...]] = []
    pauses = Pauses(lambda *row: kept.append(row))
    pauses._ran("stop", {"generation": 2, "collected": 0})  # begun before we were there
    pauses._ran("start", {"generation": 0})
    pauses._ran("stop", {"generation": 0, "collected": 0})
    assert kept == []


def test_an_interrupt_while_the_collector_runs_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> int:
        monkeypatch.undo()
        raise KeyboardInterrupt

    went_on: list[bool] = []

    def collect() -> None:
        Pauses(lambda *row: None)._ran("start", {"generation": 0})
        went_on.append(True)  # as Python does, whatever is raised there
        time.sleep(60)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(time, "monotonic_ns", interrupted)
        with pytest.raises(KeyboardInterrupt):
            collect()
    finally:
        signal.signal(signal.SIGINT, before)
    assert went_on


def test_a_foreign_child_keeps_nothing(crowd: list[Any], tmp_path: Path) -> None:
    kept: list[tuple[int, ...]] = []
    pauses = Pauses(lambda *row: kept.append(row))
    pauses.start()
    try:
        child = os.fork()
        if child == 0:
            gc.collect()
            os._exit(len(kept))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        pauses.stop()
