"""Lines at a lock and at the GIL: who waits in which line, who has it, which lock it is."""

from __future__ import annotations

import fcntl
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from jupyter_ioscope.capture.profiler import CaptureOptions, Profiler
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.gil_holders import runners
from jupyter_ioscope.diagnosis.locks import longest_line
from jupyter_ioscope.diagnosis.rules import gil, lock
from jupyter_ioscope.model.observed import BlockedStack, BlockedStacks, LineCalls
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, Frame, Stack, Stacks, ThreadReadings
from tests import builders

MS = 1_000_000
FRAMES = (
    Frame("__getitem__", "/home/me/data.py", 12),
    Frame("Lock.__enter__", "/usr/lib/python3.11/multiprocessing/synchronize.py", 100),
    Frame("[lock shared between processes]", "", 0),
    Frame("__getitem__", "/home/me/data.py", 13),
    Frame("lookup", "/home/me/table.py", 40),
    Frame("refresh", "/home/me/cache.py", 7),
)
WAITING, HOLDING = (0, 1, 2), (3, 4)


def in_line(state: str = "lock", frames: tuple[int, ...] = WAITING) -> Profile:
    """Two workers: half of a fetch they wait in `frames`, the other half they run `lookup`."""
    profile = builders.profile(
        workers=2, states={state: 0.5, "cpu": 0.5}, fetch_ms=40.0, batches=200, step_ms=0.1
    )
    stacks = []
    for reading in profile.threads:
        if reading.role == "worker":
            waits = [
                when
                for when, number in zip(reading.sample_ns, reading.states, strict=True)
                if STATES[number] == state
            ]
            seen = tuple(when + MS for when in waits)
            number = STATES.index(state)
            stacks.append(BlockedStack("worker", reading.worker, reading.pid, number, frames, seen))
    running = tuple(
        Stack("worker", row.worker, row.pid, "MainThread", HOLDING, 100) for row in profile.workers
    )
    return replace(
        profile,
        blocked=BlockedStacks(25.0, FRAMES, tuple(stacks)),
        stacks=Stacks("py-spy", 25.0, True, FRAMES, running),
    )


def test_a_line_at_a_shared_lock_names_the_waiting_and_the_holding_line() -> None:
    line = longest_line(in_line(), "worker")
    assert line is not None
    assert line.shared
    assert line.waiting.where == "__getitem__ in /home/me/data.py, line 12"
    assert line.held is not None
    assert line.held.state == "running"
    assert line.held.where == "lookup in /home/me/table.py, line 40"


@pytest.mark.parametrize(
    "entry",
    [
        (Frame("guarded", "/home/me/cache.py", 29),
         Frame("_GeneratorContextManager.__enter__", "/usr/lib/python3.11/contextlib.py", 137)),
        (Frame("Guard.__enter__", "/home/me/cache.py", 29), None),
    ],
    ids=["a generator", "a class"],
)  # fmt: skip
def test_the_holder_of_a_lock_taken_by_a_context_manager_is_its_caller(
    entry: tuple[Frame, Frame | None],
) -> None:
    """`with guarded():` in line 12; what is done with the lock, in line 13. Leaving it is quick."""
    own, library = entry
    profile = in_line()
    assert profile.blocked is not None
    assert profile.stacks is not None
    above = (Frame("__getitem__", "/home/me/data.py", 12), *((library,) if library else ()))
    frames = (*above, own, FRAMES[2], FRAMES[3], own._replace(line=33))
    size = len(frames)
    waiting = tuple(range(size - 2))
    blocked = tuple(row._replace(frames=waiting) for row in profile.blocked.stacks)
    stacks = tuple(
        row._replace(frames=at, count=times)
        for row in profile.stacks.stacks
        for at, times in (((size - 2,), 60), ((0, size - 1), 40))
    )
    held = longest_line(
        replace(
            profile,
            blocked=replace(profile.blocked, frames=frames, stacks=blocked),
            stacks=replace(profile.stacks, frames=frames, stacks=stacks),
        ),
        "worker",
    )
    assert held is not None
    assert held.held is not None
    assert held.held.where == "__getitem__ in /home/me/data.py, line 13"


def test_the_rule_says_which_lock_it_is_and_what_to_take_out_of_it() -> None:
    found = lock.judge(Facts(in_line()))
    assert found is not None
    assert found.cause == "lock_contention"
    assert "a lock that processes share" in found.title
    assert "line 12" in found.where
    assert any("runs, in lookup in /home/me/table.py, line 40" in row for row in found.evidence)
    assert "lookup in /home/me/table.py, line 40" in found.advice


def test_a_file_lock_is_named_with_its_file() -> None:
    profile = in_line()
    assert profile.blocked is not None
    frames = (*FRAMES[:2], Frame("[flock] /data/index.lock", "", 0), *FRAMES[3:])
    named = replace(profile, blocked=replace(profile.blocked, frames=frames))
    found = lock.judge(Facts(named))
    assert found is not None
    assert "a file lock (flock) on /data/index.lock" in found.title


def inside_one_worker(*calls: str) -> Profile:
    """`in_line` at something that other processes have no part in; telling calls of the code."""
    made, futex = in_line(), STATES.index("futex")
    assert made.blocked is not None
    stacks = tuple(row._replace(state=futex) for row in made.blocked.stacks)
    threads = tuple(
        replace(row, states=tuple(futex if STATES[state] == "lock" else state
                                  for state in row.states))
        for row in made.threads
    )  # fmt: skip
    known = (LineCalls("/home/me/data.py", 0, calls),) if calls else ()
    blocked = replace(made.blocked, stacks=stacks)
    return replace(made, blocked=blocked, threads=threads, calls=known)


def test_a_wait_for_threads_of_a_library_is_not_called_a_lock_for_certain() -> None:
    found = lock.judge(Facts(inside_one_worker()))
    assert found is not None
    assert found.title == "Fetches wait for a lock, or for threads of a library"
    assert "torch.set_num_threads(1)" in found.advice
    known = lock.judge(Facts(inside_one_worker("threading.Lock")))
    assert known is not None
    assert known.title == "Fetches stand in line for a lock of this process"


def test_without_stacks_by_state_the_rule_judges_as_before() -> None:
    found = lock.judge(Facts(replace(in_line(), blocked=None)))
    assert found is not None
    assert found.title == "Fetches stand in line for a lock"


def test_no_line_no_lock() -> None:
    quiet = builders.profile(workers=2, states={"cpu": 0.6, "disk": 0.4}, batches=100)
    assert lock.judge(Facts(quiet)) is None


def beside(profile: Profile) -> Profile:
    """The profile with a thread that runs beside the loop."""
    main = next(row for row in profile.threads if row.role == "consumer")
    life_ns = main.last_ns - main.first_ns
    extra = ThreadReadings(
        profile.pid, main.tid + 7, "refresh-0", "other", -1, main.first_ns, main.last_ns,
        int(0.8 * life_ns), int(0.1 * life_ns), 0,
    )  # fmt: skip
    quiet = replace(extra, tid=main.tid + 8, name="watch", run_ns=life_ns // 1000)
    stacks = Stacks(
        "py-spy", 25.0, True, FRAMES,
        (Stack("other", -1, profile.pid, "refresh-0", (5,), 90),
         Stack("other", -1, profile.pid, "watch", (4,), 90)),
    )  # fmt: skip
    return replace(profile, threads=(*profile.threads, extra, quiet), stacks=stacks)


def test_a_line_at_the_gil_names_the_thread_that_runs_beside_the_loop() -> None:
    alone = builders.profile(
        workers=0, states={"gil": 0.5, "cpu": 0.5}, fetch_ms=40.0, batches=100, step_ms=0.1
    )
    profile = beside(alone)
    (runner,) = runners(profile, (profile.pid,), "consumer")
    assert runner.name == "refresh"
    assert runner.core_fraction == pytest.approx(0.8, abs=0.01)
    found = gil.judge(Facts(profile))
    assert found is not None
    assert any("Thread refresh runs meanwhile" in row for row in found.evidence)
    assert "refresh in /home/me/cache.py, line 7" in found.advice


class Indexed(Dataset[torch.Tensor]):
    """Every item is looked up under a lock on a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __len__(self) -> int:
        return 120

    def __getitem__(self, index: int) -> torch.Tensor:
        with open(self.path, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            time.sleep(0.015)
        return torch.zeros(2)


@pytest.mark.timeout(240)
def test_a_file_lock_of_real_workers_is_named(tmp_path: Path) -> None:
    path = tmp_path / "index.lock"
    profiler = Profiler(CaptureOptions())
    profiler.start()
    for _ in DataLoader(Indexed(path), batch_size=4, num_workers=2):
        pass
    profile = profiler.stop()
    found = lock.judge(Facts(profile))
    assert found is not None
    assert f"a file lock (flock) on {path}" in found.title
    line = longest_line(profile, "worker")
    assert line is not None
    assert line.waiting.name.endswith("__getitem__")
    assert line.held is not None
    assert line.held.state == "sleep"
    assert line.held.where.endswith(f"line {line.waiting.line + 1}")
