"""Stacks of blocked threads: the right function, the right state, nothing left behind."""

from __future__ import annotations

import json
import mmap
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_ioscope.capture._blocked_read import blocked_file, build_blocked, read_blocked
from jupyter_ioscope.capture._blocked_sampler import BlockedSampler
from jupyter_ioscope.capture.cells import CellMap
from jupyter_ioscope.capture.profiler import CaptureOptions, Profiler
from jupyter_ioscope.model.observed import BlockedStacks
from jupyter_ioscope.model.readings import STATES
from tests.io_causes.slow_mount import slow_mount, why_not
from tests.known_split import Split, iterate

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc"),
]


def sampled(folder: Path, run: Callable[[], None], rate_hz: float = 100.0) -> BlockedStacks:
    """What a sampler of this thread notes while `run` runs."""
    sampler = BlockedSampler(blocked_file(str(folder)), threading.get_native_id(), rate_hz)
    sampler.start()
    try:
        run()
    finally:
        sampler.stop()
    return built(folder)


def built(folder: Path, **changes: object) -> BlockedStacks:
    keywords = {"pid": os.getpid(), "consumer_tid": threading.get_native_id(), "workers": {}}
    found = build_blocked(read_blocked(str(folder)), cells=CellMap(), **{**keywords, **changes})  # type: ignore[arg-type]
    assert found is not None
    return found


def consumer(blocked: BlockedStacks) -> Counter[tuple[str, str, str]]:
    """(function, state, wait) -> instants of the thread of interest; `wait` from the last frame."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for stack in blocked.stacks:
        if stack.role == "consumer":
            frames = [blocked.frames[index] for index in stack.frames]
            own = [f.name.rpartition(".")[2] for f in frames if f.file == __file__]
            counts[own[-1], STATES[stack.state], frames[-1].name] += len(stack.seen_ns)
    return counts


def sleep_times(number: int) -> None:
    for _ in range(number):
        time.sleep(0.2)


def wait_for_pipe(seconds: float) -> None:
    read, write = os.pipe()
    timer = threading.Timer(seconds, os.write, (write, b"x"))
    timer.start()
    os.read(read, 1)
    timer.join()
    os.close(read)
    os.close(write)


def burn(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_a_wait_is_seen_in_its_function_and_burning_never_is(tmp_path: Path) -> None:
    def run() -> None:
        for _ in range(15):
            wait_for_pipe(0.03)
            burn(0.02)

    counts = consumer(sampled(tmp_path, run))
    assert counts["wait_for_pipe", "pipe", "[read]"] > 10
    assert not [key for key in counts if key[0] == "burn"]


def test_instants_of_one_wait_have_one_number_of_turns(tmp_path: Path) -> None:
    blocked = sampled(tmp_path, lambda: sleep_times(5))
    turns = [turn for row in blocked.stacks if row.role == "consumer" for turn in row.turns]
    assert 5 <= len(set(turns)) <= 7  # five sleeps, and the end of the run
    assert len(turns) > 5 * len(set(turns))


def test_a_thread_stands_in_line_for_the_gil_only_behind_another(tmp_path: Path) -> None:
    alone, together = tmp_path / "alone", tmp_path / "together"
    alone.mkdir()
    together.mkdir()
    assert not [key for key in consumer(sampled(alone, lambda: burn(0.5))) if key[1] == "gil"]

    def beside() -> None:
        other = threading.Thread(target=burn, args=(0.6,))
        other.start()
        burn(0.6)
        other.join()

    counts = consumer(sampled(together, beside))
    assert counts["burn", "gil", "[GIL]"] > 0


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_page_faults_that_keep_the_gil_are_found_from_the_instants_missed(tmp_path: Path) -> None:
    data, notes = tmp_path / "data", tmp_path / "notes"
    data.mkdir()
    notes.mkdir()
    step = 4 << 20  # beyond what one fault reads ahead
    with open(data / "mapped", "wb") as made:
        made.truncate(24 * step)
    with slow_mount(data, read_s=0.08, cached=True) as point, open(point / "mapped", "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

        def copied(at: int) -> bytes:
            return memoryview(mapped)[at : at + 10].tobytes()

        def looked_up(at: int) -> int:
            value = mapped[at]  # no call into a library: it lets go when it calls burn
            burn(0.01)
            return value

        def run() -> None:
            for number in range(24):
                (looked_up if number % 2 else copied)(number * step)
                burn(0.01)

        blocked = sampled(notes, run, rate_hz=20.0)
    found = {key: n for key, n in consumer(blocked).items() if key[1] == "page_fault"}
    # 24 faults of 80 ms or more, twenty instants a second; those just before the end of a fault
    # leave no evidence
    assert sum(found.values()) >= 6
    right = sum(n for key, n in found.items() if key[0] in ("copied", "looked_up"))
    assert right >= 0.85 * sum(found.values())
    assert {key[0] for key in found} >= {"copied", "looked_up"}


def open_here() -> set[str]:
    """What this process has open."""
    links = Path("/proc/self/fd").iterdir()
    return {os.readlink(link) for link in links if os.path.lexists(link)}


def test_nothing_is_left_behind_and_the_random_state_is_the_users(tmp_path: Path) -> None:
    threads, descriptors = threading.active_count(), open_here()
    state = random.getstate()
    sampled(tmp_path, lambda: time.sleep(0.2))
    assert threading.active_count() == threads
    assert open_here() <= descriptors
    assert random.getstate() == state


def test_a_killed_process_leaves_what_it_noted_until_a_second_before(tmp_path: Path) -> None:
    child = multiprocessing.get_context("fork").Process(target=_until_killed, args=(tmp_path,))
    child.start()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not any(tmp_path.glob("*.jsonl")):
        time.sleep(0.05)
    time.sleep(1.6)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    blocked = built(tmp_path, workers={child.pid: 3})
    assert any(row.role == "worker" and row.worker == 3 for row in blocked.stacks)


def _until_killed(folder: Path) -> None:
    BlockedSampler(blocked_file(str(folder)), threading.get_native_id()).start()
    while True:
        time.sleep(0.05)


def test_a_forked_child_does_not_touch_its_parents_sampler(tmp_path: Path) -> None:
    sampler = BlockedSampler(blocked_file(str(tmp_path)), threading.get_native_id(), 100.0)
    sampler.start()
    open_before = len(os.listdir("/proc/self/fd"))
    pid = os.fork()
    if pid == 0:
        sampler.forget()
        sampler.stop()
        closed = open_before - len(os.listdir("/proc/self/fd"))
        os._exit(0 if threading.active_count() == 1 and closed >= 5 else 1)
    assert os.waitpid(pid, 0)[1] == 0
    time.sleep(0.2)
    sampler.stop()
    assert sum(len(row.seen_ns) for row in built(tmp_path).stacks) > 5


def test_a_profile_holds_the_stacks_of_workers_and_none_when_not_wanted(tmp_path: Path) -> None:
    file = tmp_path / "rows"
    file.write_bytes(os.urandom(1 << 18))
    for wanted in (True, False):
        profiler = Profiler(CaptureOptions(stacks=wanted))
        profiler.start()
        names = {thread.name for thread in threading.enumerate()}
        iterate(Split(file, 60, cpu_ms=10.0), workers=2, batch_size=4)
        profile = profiler.stop()
        assert any(name.startswith("ioscope blocked") for name in names) == wanted
        assert (profile.blocked is not None) == wanted
        if profile.blocked is not None:
            assert {row.role for row in profile.blocked.stacks} >= {"consumer"}
        assert not [row for row in profile.threads if row.name.startswith("ioscope")]
    assert not [t for t in threading.enumerate() if t.name.startswith("ioscope blocked")]


def line(**changes: object) -> str:
    content = {
        "pid": 7, "keys": [], "stacks": [], "seen": [], "names": {"7": "MainThread"}, "gil": None,
        "rate_hz": 20.0, "instants": 10, "contended": 0, "missed": 0, "cpu_ns": 1,
    }  # fmt: skip
    return json.dumps({**content, **changes}) + "\n"


def test_a_torn_last_line_costs_only_itself(tmp_path: Path) -> None:
    whole = line(
        keys=[["S", "230", "", ""]], stacks=[[["f", "/x.py", 3]]], seen=[[7, 0, 0, 100, 5]]
    )
    (tmp_path / "blocked-7-1.jsonl").write_text(whole + whole[:40])
    (notes,) = read_blocked(str(tmp_path))
    assert notes.seen == [(7, 0, 0, 100, 5)]


def test_after_the_rate_was_halved_every_instant_stands_for_as_much_time(tmp_path: Path) -> None:
    first = [[7, 0, 0, when, 1] for when in range(100)]
    later = [[7, 0, 0, when, 1] for when in range(200, 250)]
    text = line(seen=first, rate_hz=20.0) + line(seen=later, rate_hz=10.0)
    (tmp_path / "blocked-7-1.jsonl").write_text(text)
    (notes,) = read_blocked(str(tmp_path))
    assert sum(row[3] < 100 for row in notes.seen) == 50
    assert sum(row[3] >= 200 for row in notes.seen) == 50
