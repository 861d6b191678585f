"""Texts of the Linux kernel become states: recorded texts, and real threads."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_ioscope.capture import harvest, syscalls
from jupyter_ioscope.capture.procfs import data_ranges, parse_stat
from jupyter_ioscope.capture.states import classify
from jupyter_ioscope.capture.tree import Tree
from jupyter_ioscope.capture.watch import Watch
from jupyter_ioscope.capture.without_calls import Samples, refine
from jupyter_ioscope.model.readings import STATES

GIL = ((0x55901A000000, 0x55901A100000),)

# (state character, syscall, wchan, link) as recorded on Linux 6.18, x86_64.
RECORDED = [
    ("running", ("R", "running", "", "")),
    ("running", ("S", "running", "", "")),
    ("poll", ("S", "7 0x7f1f11a8ec50 0x1 0x1388", "", "")),
    ("poll", ("S", "232 0x5 0x7f 0x2", "", "")),
    ("poll", ("S", "23 0x5 0x7f 0x0", "", "")),
    ("sleep", ("S", "23 0x0 0x0 0x0", "", "")),
    ("futex", ("S", "202 0x7f1f04000ba0 0x189 0x0", "", "")),
    ("lock", ("S", "202 0x7f1f04000ba0 0x109 0x0", "", "")),
    ("gil", ("S", "202 0x55901a0861f0 0x189 0x0", "", "")),
    ("network", ("S", "45 0x4 0x7f 0x1000", "wait_woken", "")),
    ("pipe", ("S", "45 0x4 0x7f 0x1000", "unix_stream_data_wait", "")),
    ("pipe", ("S", "0 0x3 0x7f 0x1", "", "pipe:")),
    ("pipe", ("D", "1 0x3 0x7f 0x1", "", "pipe:")),
    ("network", ("S", "0 0x3 0x7f 0x1", "wait_woken", "socket:")),
    ("pipe", ("S", "0 0x3 0x7f 0x1", "unix_stream_data_wait", "socket:")),
    ("disk", ("D", "17 0x3 0x7f 0x1", "", "/data/a.jpg")),
    ("disk", ("S", "0 0x3 0x7f 0x1", "", "/mnt/fuse/a.jpg")),
    ("disk", ("D", "0 0x3 0x7f 0x1", "folio_wait_bit_common", "")),
    ("disk", ("D", "257 0xffffff9c", "", "")),
    ("disk", ("D", "74 0x3", "", "")),
    ("blocked", ("S", "0 0x0 0x7f 0x1", "n_tty_read", "/dev/pts/0")),
    ("page_fault", ("D", "-1 0x7ffd 0x7f89", "folio_wait_bit_common", "")),
    ("blocked", ("D", "-1 0x7ffd 0x7f89", "rwsem_down_read_slowpath", "")),
    ("sleep", ("S", "230 0x1 0x0", "", "")),
    ("lock", ("S", "73 0x3 0x2", "", "")),
    ("lock", ("S", "72 0x3 0x7", "", "")),
    ("wait_child", ("S", "61 0x1 0x7f", "", "")),
    ("blocked", ("T", "0 0x3 0x7f", "", "pipe:")),
    ("blocked", ("S", "9999 0x3", "", "")),
    # without the right to see system calls
    ("futex", ("S", "", "futex_do_wait", "")),
    ("sleep", ("S", "", "hrtimer_nanosleep", "")),
    ("pipe", ("S", "", "anon_pipe_read", "")),
    ("network", ("S", "", "wait_woken", "")),
    ("poll", ("S", "", "poll_schedule_timeout.constprop.0", "")),
    ("lock", ("S", "", "locks_lock_inode_wait", "")),
    ("disk", ("D", "", "0", "")),
    ("blocked", ("S", "", "0", "")),
    ("blocked", ("S", "", "", "")),
]


@pytest.mark.parametrize(("state", "texts"), RECORDED)
def test_a_recorded_text_is_understood(state: str, texts: tuple[str, str, str, str]) -> None:
    assert classify(*texts, gil=GIL, arch="x86_64") == state


def test_arm_has_its_own_numbers() -> None:
    assert classify("S", "101 0x1 0x0", arch="aarch64") == "sleep"
    assert classify("S", "98 0x7f00 0x189 0x0", arch="aarch64") == "futex"
    assert classify("S", "63 0x3 0x7f 0x1", link="pipe:", arch="aarch64") == "pipe"


def test_an_unknown_machine_falls_back_to_the_function_slept_in() -> None:
    assert classify("S", "101 0x1 0x0", "do_nanosleep", arch="riscv64") == "sleep"


def _names(path: str) -> dict[int, str]:
    if not Path(path).exists():
        pytest.skip(f"no {path} here")
    found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", Path(path).read_text())
    return {int(number): name for name, number in found}


@pytest.mark.parametrize(
    ("arch", "header"),
    [
        ("x86_64", "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
        ("aarch64", "/usr/include/asm-generic/unistd.h"),
    ],
)
def test_the_numbers_are_those_of_the_kernel_headers(arch: str, header: str) -> None:
    expected = {
        "futex": ("futex", "futex_waitv"),
        "sleep": ("nanosleep", "clock_nanosleep"),
        "wait_child": ("wait4", "waitid", "clone", "clone3"),
        "lock": ("flock", "fcntl", "semop", "semtimedop"),
        "select": ("pselect6",),
        "poll": ("ppoll", "epoll_pwait", "accept", "accept4"),
        "socket": ("recvfrom", "recvmsg", "sendto", "sendmsg", "connect"),
        "descriptor": ("read", "write", "pread64", "pwrite64", "readv", "preadv2"),
        "file": ("openat", "statx", "fsync", "getdents64", "lseek", "fallocate"),
        "pipe": ("msgrcv", "mq_timedreceive"),
    }
    numbers = {name: number for number, name in _names(header).items()}
    for kind, names in expected.items():
        for name in names:
            assert syscalls.kind(numbers[name], arch) == kind, name


def test_the_interpreters_data_includes_the_unnamed_part_behind_it_but_not_the_heap() -> None:
    maps = (
        "1000-2000 r-xp 00000000 fe:00 1   /usr/bin/python3.11\n"
        "2000-3000 rw-p 00001000 fe:00 1   /usr/bin/python3.11\n"
        "3000-5000 rw-p 00000000 00:00 0 \n"
        "5000-9000 rw-p 00000000 00:00 0   [heap]\n"
        "a000-b000 rw-p 00000000 fe:00 2   /usr/lib/libpython3.13t.so.1.0\n"
        "b000-c000 rw-p 00000000 00:00 0 \n"
        "c000-d000 rw-p 00000000 00:00 0 \n"
        "e000-f000 rw-p 00000000 fe:00 3   /usr/lib/libc.so.6\n"
    )
    ranges = [(0x2000, 0x3000), (0x3000, 0x5000), (0xA000, 0xB000), (0xB000, 0xC000)]
    assert data_ranges(maps) == tuple(ranges)


def test_a_name_with_blanks_and_parentheses_does_not_shift_the_fields() -> None:
    fields = " ".join(str(number) for number in range(3, 53))
    raw = f"12 (a) S (b c)) S {fields[2:]}".encode()
    stat = parse_stat(raw)
    assert (stat.name, stat.state, stat.parent) == ("a) S (b c)", "S", 4)
    assert (stat.major_faults, stat.start_ticks) == (12, 22)


def _samples(states: list[str], faults: list[int], slices: list[int], pid: int = 1) -> Samples:
    times = [position * 40_000_000 for position in range(len(states))]
    return Samples(pid, times, [STATES.index(name) for name in states], faults, slices)


def test_without_calls_a_disk_wait_that_ends_with_a_major_fault_is_a_page_fault() -> None:
    samples = _samples(["disk", "disk", "running", "disk"], [0, 0, 1, 1], [0, 1, 2, 3])
    refine([samples])
    assert [STATES[state] for state in samples.states] == ["disk", "page_fault", "running", "disk"]


def test_without_calls_a_futex_that_asks_often_while_another_runs_is_the_gil() -> None:
    count = 20
    often = _samples(["futex"] * count, [0] * count, [8 * n for n in range(count)])
    runs = _samples(["running"] * count, [0] * count, list(range(count)))
    seldom = _samples(["futex"] * count, [0] * count, list(range(count)))
    elsewhere = _samples(["futex"] * count, [0] * count, [8 * n for n in range(count)], pid=2)
    refine([often, runs, seldom, elsewhere])
    assert {STATES[state] for state in often.states} == {"gil"}
    assert {STATES[state] for state in seldom.states} == {"futex"}
    assert {STATES[state] for state in elsewhere.states} == {"futex"}


THREADS = """
import fcntl, json, multiprocessing, os, select, socket, subprocess, sys, tempfile, threading, time
tids = {}
def run(name, work):
    def body():
        tids[name] = threading.get_native_id()
        work()
    threading.Thread(target=body, daemon=True).start()
reader, writer = os.pipe()
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
left, right = socket.socketpair()
path = tempfile.NamedTemporaryFile()
held = open(path.name)
fcntl.flock(held, fcntl.LOCK_EX)
other = open(path.name)
shared, private = multiprocessing.Lock(), threading.Lock()
shared.acquire(); private.acquire()
child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=-1)
run("sleep", lambda: time.sleep(60))
run("pipe", lambda: os.read(reader, 1))
run("network", lambda: client.recv(1))
run("pipe (local socket)", lambda: left.recv(1))
run("lock (flock)", lambda: fcntl.flock(other, fcntl.LOCK_EX))
run("lock (shared)", shared.acquire)
run("futex", private.acquire)
run("poll", lambda: select.select([reader], [], [], 60))
run("wait_child", child.wait)
while len(tids) < 9: time.sleep(0.01)
time.sleep(0.1)
print(json.dumps(tids), flush=True)
sys.stdin.read()
child.kill()
"""
BUSY = """
import json, sys, threading
tids = {}
def burn(name):
    tids[name] = threading.get_native_id()
    while True:
        sum(range(100))
for name in sys.argv[1:]:
    threading.Thread(target=burn, args=(name,), daemon=True).start()
while len(tids) < len(sys.argv) - 1: pass
print(json.dumps(tids), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def targets() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


STILL = """
import json, subprocess, sys
print(json.dumps({}), flush=True)
sys.stdin.readline()
child = subprocess.Popen(["sleep", "20"])
print(json.dumps({"child": child.pid}), flush=True)
sys.stdin.readline()
child.kill()
"""


def _start(
    targets: list[subprocess.Popen[str]], code: str, *names: str
) -> tuple[int, dict[str, int]]:
    command = [sys.executable, "-c", code, *names]
    process = subprocess.Popen(command, stdin=-1, stdout=-1, text=True)
    targets.append(process)
    assert process.stdout is not None
    return process.pid, json.loads(process.stdout.readline())


def _watch(pid: int, beats: int = 30) -> dict[int, Counter[str]]:
    tree = Tree("/proc", pid, pid, frozenset())
    watch = Watch("/proc", platform.machine())
    start_ns = time.monotonic_ns()
    for beat in range(beats):
        if beat % 10 == 0:
            tree.look_closely()
            watch.update(tree.threads())
            watch.count()
        watch.sample()
        time.sleep(0.013)
    watch.count()
    packed = harvest.pack_threads(watch, tree, start_ns, platform.machine())
    watch.close()
    return {
        item["tid"]: Counter(STATES[state] for state in harvest.unpack("b", item["states"]))
        for item in packed
    }


def _still_after(watch: Watch, readings: int, pids: set[int]) -> set[int]:
    for _ in range(readings):
        time.sleep(0.02)
        watch.count()
    return {pid for pid, _ in watch.still()} & pids


needs_linux = pytest.mark.skipif(
    not Path("/proc/self/syscall").exists(), reason="needs /proc/<pid>/syscall of Linux"
)


@needs_linux
@pytest.mark.timeout(240)
def test_real_waits_are_told_apart(targets: list[subprocess.Popen[str]]) -> None:
    pid, tids = _start(targets, THREADS)
    seen = _watch(pid)
    for name, tid in tids.items():
        expected = name.split(" ")[0]
        assert seen[tid][expected] >= 0.9 * sum(seen[tid].values()) > 10, (name, seen[tid])


@needs_linux
@pytest.mark.timeout(240)
def test_two_python_threads_wait_for_the_interpreter_lock(
    targets: list[subprocess.Popen[str]],
) -> None:
    pid, tids = _start(targets, BUSY, "one", "two")
    both: Counter[str] = Counter()
    for _ in range(10):  # on a busy machine the waiting thread often waits for a core as well
        seen = _watch(pid)
        both += seen[tids["one"]] + seen[tids["two"]]
        if both["gil"] > 10:
            break
    blocked = sum(both.values()) - both["running"]
    if getattr(sys, "_is_gil_enabled", lambda: True)():
        assert both["gil"] > 10, both
        assert both["gil"] > 0.8 * blocked, both
    else:
        assert blocked < 0.1 * sum(both.values()), both


@needs_linux
@pytest.mark.timeout(240)
def test_a_lone_python_thread_runs(targets: list[subprocess.Popen[str]]) -> None:
    pid, tids = _start(targets, BUSY, "alone")
    states = _watch(pid)[tids["alone"]]
    assert states["running"] > 0.9 * sum(states.values()), states


@needs_linux
def test_threads_that_have_not_run_for_a_while_are_not_asked_for_children(
    targets: list[subprocess.Popen[str]],
) -> None:
    asleep, _ = _start(targets, STILL)
    tree = Tree("/proc", asleep, asleep, frozenset())
    watch = Watch("/proc", platform.machine())
    watch.update(tree.threads())
    assert not _still_after(watch, 2, {asleep}), "not long enough"
    assert any(_still_after(watch, 4, {asleep}) for _ in range(50))
    process = targets[-1]
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    child = json.loads(process.stdout.readline())["child"]
    assert not _still_after(watch, 1, {asleep}), "it has run"
    tree.look_closely(watch.still())
    assert child in tree.processes
    watch.close()
