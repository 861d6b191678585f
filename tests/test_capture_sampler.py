"""The helper process: what it sees of a real process tree."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_ioscope.capture.pyspy import find_py_spy
from jupyter_ioscope.capture.rights import may_read_memory
from jupyter_ioscope.capture.sampler import Sampler
from tests.sampler_answers import request_for, states_of, stopped, thread_of

pytestmark = pytest.mark.timeout(300)
needs_linux = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
HERE = os.getpid()

# Two workers as a loader forks them: one computes, one sleeps; the second has a child of its own.
WORKERS = """
import os, sys, time
def compute():
    while True: sum(range(1000))
def wait():
    if os.fork() == 0: compute()
    while True: time.sleep(0.5)
pids = []
for work in (compute, wait):
    pid = os.fork()
    if pid == 0:
        work()
    pids.append(pid)
print(*pids, flush=True)
sys.stdin.read()
os.killpg(0, 9)
"""


@pytest.fixture
def sampler() -> Iterator[Sampler]:
    made = Sampler()
    yield made
    made.close()


@pytest.fixture
def workers() -> Iterator[list[int]]:
    with subprocess.Popen(
        [sys.executable, "-c", WORKERS], stdin=-1, stdout=-1, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        yield [int(part) for part in process.stdout.readline().split()]
        assert process.stdin is not None
        process.stdin.close()


@needs_linux
def test_the_whole_tree_is_seen_and_every_thread_has_its_role(
    sampler: Sampler, workers: list[int], tmp_path: Path
) -> None:
    sampler.start(request_for(tmp_path))
    until_s = time.monotonic() + 1.5
    while time.monotonic() < until_s:
        sum(range(1000))
    result = stopped(sampler, {pid: number for number, pid in enumerate(workers)})
    consumer = thread_of(result, "consumer")
    assert (consumer.pid, consumer.tid) == (HERE, threading.get_native_id())
    assert states_of(consumer)["running"] > 0.8 * len(consumer.states)
    for number, state in enumerate(("running", "sleep")):
        worker = thread_of(result, "worker", number)
        assert worker.pid == workers[number]
        assert states_of(worker)[state] > 0.9 * len(worker.states) > 8, states_of(worker)
    grandchildren = [t for t in result.threads if t.role == "other" and t.pid not in workers]
    assert any(states_of(thread)["running"] > 8 for thread in grandchildren)
    assert sampler._link is not None
    assert sampler._link.pid not in {thread.pid for thread in result.threads}


@needs_linux
def test_run_and_queue_time_are_exact_and_fit_in_the_wall_time(
    sampler: Sampler, workers: list[int], tmp_path: Path
) -> None:
    sampler.start(request_for(tmp_path))
    used_s, began_s = time.thread_time(), time.monotonic()
    while time.monotonic() - began_s < 1.0:
        sum(range(1000))
    used_s = time.thread_time() - used_s
    result = stopped(sampler, {pid: number for number, pid in enumerate(workers)})
    consumer = thread_of(result, "consumer")
    assert abs(consumer.run_ns / 1e9 - used_s) < 0.05
    for thread in result.threads:
        wall_ns = thread.last_ns - thread.first_ns
        assert thread.run_ns + thread.run_queue_ns <= wall_ns, thread
        assert len(thread.states) == len(thread.sample_ns)
        assert list(thread.sample_ns) == sorted(thread.sample_ns)
        assert all(thread.first_ns <= when <= thread.last_ns for when in thread.sample_ns)
    computing = thread_of(result, "worker", 0)
    life_ns = computing.last_ns - computing.first_ns
    assert computing.run_ns + computing.run_queue_ns > 0.85 * life_ns


@needs_linux
def test_a_worker_that_comes_and_goes_keeps_its_readings(sampler: Sampler, tmp_path: Path) -> None:
    sampler.start(request_for(tmp_path))
    code = "import time; t = time.monotonic() + 0.6\nwhile time.monotonic() < t: pass"
    child = subprocess.Popen([sys.executable, "-c", code])
    child.wait()
    time.sleep(0.5)
    worker = thread_of(stopped(sampler, {child.pid: 4}), "worker", 4)
    # Its exact times begin with its birth, not with when it was found.
    life_ns = worker.last_ns - worker.first_ns
    assert life_ns > 0.35e9
    # the start of an interpreter reads files, and the disk may be busy
    assert worker.run_ns + worker.run_queue_ns > 0.5 * life_ns
    assert worker.last_ns < time.monotonic_ns() - 0.4e9


@needs_linux
def test_a_worker_that_nobody_reaps_is_counted_once(sampler: Sampler, tmp_path: Path) -> None:
    sampler.start(request_for(tmp_path))
    code = "import time; t = time.monotonic() + 0.4\nwhile time.monotonic() < t: pass"
    child = subprocess.Popen([sys.executable, "-c", code])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended and is not reaped
    ended_ns = time.monotonic_ns()
    time.sleep(1.5)
    result = stopped(sampler, {child.pid: 0})
    child.wait()
    (worker,) = [thread for thread in result.threads if thread.pid == child.pid]
    life_ns = worker.last_ns - worker.first_ns
    assert life_ns > 0.35e9
    assert worker.last_ns < ended_ns + 1.2e9
    assert worker.states


@needs_linux
def test_counters_of_tree_and_machine_are_read(sampler: Sampler, tmp_path: Path) -> None:
    sampler.start(request_for(tmp_path))
    data = tmp_path / "data"
    data.write_bytes(bytes(2_000_000))
    until_s = time.thread_time() + 0.5  # of CPU, whatever else the machine does
    began_s = time.monotonic()
    while time.thread_time() < until_s or time.monotonic() < began_s + 1.0:
        data.read_bytes()
    live = sampler.live()
    result = stopped(sampler)
    assert result.series["tree_cpu_ns"].total() > 0.2e9
    assert result.series["tree_read_chars"].total() >= 2_000_000
    assert result.series["tree_pss_bytes"].peak() > 5_000_000
    assert set(live) <= set(result.series)
    assert live["tree_rss_bytes"] > 0
    for series in result.series.values():
        assert len(series.time_ns) == len(series.values) > 0
        if series.kind == "cumulative":
            assert list(series.values) == sorted(series.values), series.name
    assert 0 < result.sampler_cpu_s < 1.0


@needs_linux
def test_py_spy_shows_the_loop_and_the_workers(
    sampler: Sampler, workers: list[int], tmp_path: Path
) -> None:
    if find_py_spy() is None or may_read_memory(workers[0]):
        pytest.skip("py-spy is not installed or may not attach here")
    rights = sampler.start(request_for(tmp_path, take_stacks=True))
    assert (rights.attach, rights.stacks, rights.reason) == (True, "py-spy", "")
    _some_function(1.5)
    result = stopped(sampler, {pid: number for number, pid in enumerate(workers)})
    assert result.tier == "full"
    assert result.stacks is not None
    assert result.stacks.source == "py-spy"
    names: dict[tuple[str, int], set[str]] = {}
    for stack in result.stacks.stacks:
        seen = names.setdefault((stack.role, stack.worker), set())
        seen |= {result.stacks.frames[index].name for index in stack.frames}
    assert "_some_function" in names["consumer", -1]
    assert "compute" in names["worker", 0]
    assert "wait" in names["worker", 1]
    assert rights.helper_pid not in {stack.pid for stack in result.stacks.stacks}
    assert list(tmp_path.iterdir()) == [], "py-spy's file is removed"
    assert result.stacks_cpu_s > 0


def _some_function(seconds: float) -> None:
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        sum(range(1000))


@needs_linux
def test_a_second_profile_uses_the_same_helper_and_starts_afresh(
    sampler: Sampler, tmp_path: Path
) -> None:
    first = sampler.start(request_for(tmp_path))
    time.sleep(0.3)
    stopped(sampler)
    began_ns = time.monotonic_ns()
    second = sampler.start(request_for(tmp_path))
    time.sleep(0.3)
    result = stopped(sampler)
    assert first.helper_pid == second.helper_pid
    consumer = thread_of(result, "consumer")
    assert consumer.first_ns >= began_ns
    assert min(consumer.sample_ns) >= began_ns


def test_a_start_that_nobody_stopped_gives_way_to_the_next(
    sampler: Sampler, tmp_path: Path
) -> None:
    sampler.start(request_for(tmp_path))
    rights = sampler.start(request_for(tmp_path))
    assert rights.helper_pid
    time.sleep(0.2)
    assert stopped(sampler).series or not Path("/proc/stat").exists()


@needs_linux
def test_samples_do_not_fall_on_one_beat(sampler: Sampler, tmp_path: Path) -> None:
    sampler.start(request_for(tmp_path, rate_hz=50))
    _some_function(1.5)
    times = thread_of(stopped(sampler), "consumer").sample_ns
    phases = [(when / 1e9 * 50) % 1 for when in times]
    assert len(times) > 30
    assert max(Counter(int(phase * 4) for phase in phases).values()) < 0.6 * len(phases)
