"""Stacks: read from py-spy's text, cut to the user's part, and taken from inside the process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from jupyter_ioscope.capture import frames as cutting
from jupyter_ioscope.capture import stacks
from jupyter_ioscope.capture.cells import CellMap
from jupyter_ioscope.capture.pyspy import RawFrame, RawStack, find_py_spy, parse_raw
from jupyter_ioscope.model.readings import Stacks

CELL = "/tmp/ipykernel_9/17.py"
CELLS = CellMap({CELL: (7, "for batch in loader: ...")})
SITE = "/opt/lib/python3.11/site-packages"
KERNEL = (
    "_run_module_as_main (<frozen runpy>:198);_run_code (<frozen runpy>:88);"
    f"<module> ({SITE}/ipykernel_launcher.py:18);Kernel.start ({SITE}/ipykernel/kernelapp.py:701);"
    "run_forever (/usr/lib/python3.11/asyncio/base_events.py:607);"
    f"run_cell ({SITE}/IPython/core/interactiveshell.py:3000)"
)
LOOP = f"<module> ({CELL}:3);__next__ ({SITE}/torch/utils/data/dataloader.py:725)"
WORKER = (
    f"{KERNEL};{LOOP};Popen._launch (/usr/lib/python3.11/multiprocessing/popen_fork.py:71);"
    "BaseProcess._bootstrap (/usr/lib/python3.11/multiprocessing/process.py:314);"
    f"_worker_loop ({SITE}/torch/utils/data/_utils/worker.py:351);"
    f"D.__getitem__ ({CELL}:9)"
)
FEEDER = (
    "Thread._bootstrap (/usr/lib/python3.11/threading.py:1002);"
    "Thread.run (/usr/lib/python3.11/threading.py:982);"
    "Queue._feed (/usr/lib/python3.11/multiprocessing/queues.py:231)"
)
RAW = "\n".join(
    [
        f'process 9:"python -m k";thread (9): MainThread;{KERNEL};{LOOP} 30',
        f'process 9:"python -m k";thread (9): MainThread;{KERNEL} 4',
        f'process 9:"python -m k";thread (11): IOPub;f ({SITE}/zmq/x.py:1) 30',
        f'process 9:"python -m k";thread (12): Thread-3;Thread._bootstrap '
        f"(/usr/lib/python3.11/threading.py:1);Thread.run ({SITE}/ipykernel/heartbeat.py:9) 30",
        f'process 9:"python -m k";process 20:"python -m k";thread (20): MainThread;{WORKER} 25',
        f'process 9:"python -m k";process 20:"python -m k";thread (21): QueueFeederThread;'
        f"{FEEDER} 28",
        f'process 9:"python -m k";process 20:"python -m k";thread (21): QueueFeederThread;'
        f"{FEEDER} 2",
        'process 9:"python -m k";process 30:"python -c helper";thread (30): MainThread;'
        "main (/x.py:1) 30",
        'process 1:"garbage without a number',
    ]
)


def _build(raw: list[RawStack]) -> Stacks:
    return stacks.build(
        raw,
        source="py-spy",
        rate_hz=25,
        pid=9,
        consumer_tid=9,
        workers={20: 1},
        cells=CELLS,
        without=frozenset({30}),
    )


def _named(built: Stacks, role: str) -> list[tuple[int, list[str]]]:
    return [
        (stack.count, [built.frames[index].name for index in stack.frames])
        for stack in built.stacks
        if stack.role == role
    ]


def test_the_consumer_begins_at_its_cell() -> None:
    built = _build(list(parse_raw(RAW)))
    assert _named(built, "consumer") == [(30, ["<module>", "__next__"])]
    first = built.frames[next(s.frames[0] for s in built.stacks if s.role == "consumer")]
    assert (first.file, first.cell, first.line) == ("In [7]", 7, 3)


def test_a_forked_worker_begins_at_its_loop_and_has_its_id() -> None:
    built = _build(list(parse_raw(RAW)))
    assert _named(built, "worker") == [(25, ["_worker_loop", "D.__getitem__"])]
    assert {stack.worker for stack in built.stacks if stack.pid == 20} == {1}
    inner = next(frame for frame in built.frames if frame.name == "D.__getitem__")
    assert (inner.file, inner.cell) == ("In [7]", 7)


def test_equal_stacks_are_merged() -> None:
    assert _named(_build(list(parse_raw(RAW))), "feeder") == [(30, ["Queue._feed"])]


def test_threads_that_serve_the_notebook_and_the_helper_are_dropped() -> None:
    built = _build(list(parse_raw(RAW)))
    assert {stack.role for stack in built.stacks} == {"consumer", "worker", "feeder"}
    assert built.samples() == 30 + 25 + 30


def test_frames_of_the_recording_are_not_shown() -> None:
    ours = os.path.join(os.path.dirname(cutting.__file__), "recorder.py")
    frames = (RawFrame("f", CELL, 1), RawFrame("wrapped", ours, 2), RawFrame("g", "/g.py", 3))
    built = _build([RawStack(9, 9, "MainThread", frames, 1)])
    assert _named(built, "consumer") == [(1, ["f", "g"])]


def test_a_cell_that_the_map_does_not_know_keeps_its_file() -> None:
    frames = (RawFrame("k", f"{SITE}/ipykernel/x.py", 1), RawFrame("f", "/tmp/ipykernel_9/5.py", 2))
    built = _build([RawStack(9, 9, "MainThread", frames, 1)])
    assert [frame.file for frame in built.frames] == ["/tmp/ipykernel_9/5.py"]


def test_the_magic_that_runs_a_cell_is_not_part_of_it() -> None:
    door = os.path.join(os.path.dirname(os.path.dirname(cutting.__file__)), "magics.py")
    frames = (RawFrame("outer", CELL, 1), RawFrame("ioscope", door, 2), RawFrame("in", CELL, 3))
    built = _build([RawStack(9, 9, "MainThread", frames, 1)])
    assert _named(built, "consumer") == [(1, ["in"])]


def test_a_script_begins_at_its_own_first_frame() -> None:
    frames = (
        RawFrame("_run_module_as_main", "<frozen runpy>", 1),
        RawFrame("main", os.path.join(os.path.dirname(cutting._OURS), "cli.py"), 2),
        RawFrame("run_path", "/usr/lib/python3.11/runpy.py", 3),
        RawFrame("<module>", "/home/me/train.py", 4),
    )
    built = _build([RawStack(9, 9, "MainThread", frames, 2)])
    assert _named(built, "consumer") == [(2, ["<module>"])]


def test_odd_names_of_files_threads_and_commands_survive() -> None:
    line = (
        'process 5:"python "a;b" (x:1)";thread (5): Main (0x1);'
        '<lambda> (/tmp/a; b (c:1) "q"/x;y.py:12);g (/h.py:3) 4'
    )
    (stack,) = parse_raw(line)
    assert (stack.pid, stack.tid, stack.samples) == (5, 5, 4)
    assert stack.frames == (
        RawFrame("<lambda>", '/tmp/a; b (c:1) "q"/x;y.py', 12),
        RawFrame("g", "/h.py", 3),
    )


def test_a_thread_without_number_or_name_is_still_read() -> None:
    (stack,) = parse_raw('process 5:"p";thread (0x7F01);f (a.py:1) 4')
    assert (stack.tid, stack.thread, stack.frames) == (0, "", (RawFrame("f", "a.py", 1),))


TARGET = """
import os, sys, threading, time
def inner_work(until):
    while time.time() < until: sum(range(500))
exec(compile("def odd(until):\\n    inner_work(until)\\n", '/tmp/a; b (c:1) "q"/x;y.py', "exec"))
def blocked():
    threading.Event().wait(60)
threading.Thread(target=blocked, name='a;b "c"', daemon=True).start()
print("ready", flush=True)
odd(time.time() + 20)
"""


@pytest.mark.timeout(240)
def test_what_this_py_spy_writes_is_understood(tmp_path: Path) -> None:
    from jupyter_ioscope.capture.pyspy import PySpy
    from jupyter_ioscope.capture.rights import may_read_memory

    executable = find_py_spy()
    if executable is None:
        pytest.skip("py-spy is not installed")
    with subprocess.Popen([sys.executable, "-c", TARGET], stdout=-1) as target:
        try:
            assert target.stdout is not None
            target.stdout.readline()
            if may_read_memory(target.pid):
                pytest.skip("attaching is refused here")
            spy = PySpy(executable, target.pid, str(tmp_path / "out.raw"), 50)
            deadline_s = time.monotonic() + 20
            while not spy.settled() and time.monotonic() < deadline_s:
                time.sleep(0.01)
            time.sleep(1.0)
            assert spy.stop() == ""
        finally:
            target.kill()
    raw = list(parse_raw((tmp_path / "out.raw").read_text()))
    assert {stack.pid for stack in raw} == {target.pid}
    busy = [stack for stack in raw if any(frame.name == "inner_work" for frame in stack.frames)]
    assert {frame.name for stack in busy for frame in stack.frames} == {
        *("<module>", "odd", "inner_work")
    }
    files = {frame.file for stack in busy for frame in stack.frames if frame.name == "odd"}
    assert files == {'/tmp/a; b (c:1) "q"/x;y.py'}
    assert {stack.tid for stack in busy} == {target.pid}
    assert any(frame.name == "blocked" for stack in raw for frame in stack.frames)


@pytest.mark.timeout(240)
def test_a_failed_py_spy_says_why(tmp_path: Path) -> None:
    from jupyter_ioscope.capture.pyspy import PySpy

    failing = tmp_path / "py-spy"
    failing.write_text("#!/bin/sh\nexit 3\n")
    failing.chmod(0o700)
    spy = PySpy(str(failing), os.getpid(), str(tmp_path / "out"), 25)
    while not spy.settled():
        time.sleep(0.01)
    assert spy.stop() == "py-spy failed (exit code 3)"
    failing.write_text("#!/bin/sh\necho sampling\nexit 0\n")
    spy = PySpy(str(failing), os.getpid(), str(tmp_path / "out"), 25)
    while spy.running():
        time.sleep(0.01)
    assert spy.stop() == "py-spy wrote no file"


def _busy_here(stop: threading.Event) -> None:
    while not stop.wait(0.001):
        sum(range(200))


@pytest.mark.timeout(240)
def test_stacks_from_inside_name_thread_function_and_file(tmp_path: Path) -> None:
    stop = threading.Event()
    worker = threading.Thread(target=_busy_here, args=(stop,), name="busy one")
    worker.start()
    sampler = stacks.InProcessStacks(stacks.stack_file(str(tmp_path)), 200)
    sampler.start()
    time.sleep(0.5)
    sampler.stop()
    stop.set()
    worker.join()
    raw = stacks.read_in_process(str(tmp_path))
    assert {stack.pid for stack in raw} == {os.getpid()}
    mine = [stack for stack in raw if stack.thread == "busy one"]
    assert sum(stack.samples for stack in mine) > 3
    assert {stack.tid for stack in mine} == {worker.native_id}
    for stack in mine:
        assert any(f.name.endswith("_busy_here") and f.file == __file__ for f in stack.frames)
    assert not any(stack.thread.startswith("ioscope") for stack in raw)


@pytest.mark.timeout(240)
def test_only_the_threads_asked_for_are_looked_at(tmp_path: Path) -> None:
    stop = threading.Event()
    worker = threading.Thread(target=_busy_here, args=(stop,), name="busy one")
    worker.start()
    wanted = [threading.get_ident()]
    sampler = stacks.InProcessStacks(stacks.stack_file(str(tmp_path)), 200, wanted)
    sampler.start()
    time.sleep(0.2)
    sampler.stop()
    stop.set()
    worker.join()
    raw = stacks.read_in_process(str(tmp_path))
    assert {stack.tid for stack in raw} == {threading.get_native_id()}


FORKED = """
import os, sys, time
from jupyter_ioscope.capture import stacks
child = os.fork()
if not child:
    own = stacks.InProcessStacks(stacks.stack_file(sys.argv[1]), 200)
    own.start()
    time.sleep(0.1)
    own.stop()
    os._exit(0)
os.waitpid(child, 0)
print(child)
"""


@pytest.mark.timeout(240)
@pytest.mark.skipif(sys.platform != "linux", reason="threads are numbered otherwise")
def test_the_main_thread_of_a_forked_process_is_known_by_its_own_number(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED, str(tmp_path)], capture_output=True, text=True, check=True
    )
    raw = stacks.read_in_process(str(tmp_path))
    assert {(stack.pid, stack.tid) for stack in raw} == {(int(done.stdout), int(done.stdout))}


def test_nothing_is_left_of_a_stopped_sampler(tmp_path: Path) -> None:
    before = threading.active_count()
    sampler = stacks.InProcessStacks(stacks.stack_file(str(tmp_path)), 100)
    sampler.start()
    sampler.stop()
    sampler.stop()
    assert threading.active_count() == before
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]


def test_a_folder_that_vanished_and_a_broken_file_hurt_nobody(tmp_path: Path) -> None:
    sampler = stacks.InProcessStacks(str(tmp_path / "gone" / "stacks-1.json"), 100)
    sampler.start()
    time.sleep(0.05)
    sampler.stop()
    (tmp_path / "stacks-1.json").write_text('{"pid": 3, "stacks": [[1')
    (tmp_path / "stacks-2.json").write_text(json.dumps({"pid": 3, "stacks": [[4, "t", [], 2]]}))
    assert stacks.read_in_process(str(tmp_path)) == [RawStack(3, 4, "t", (), 2)]


CELLS_RUN = (
    """
import os, tempfile, threading, time
from jupyter_ioscope.capture.cells import CellMap
from jupyter_ioscope.capture.request import SamplerRequest
from jupyter_ioscope.capture.sampler import Sampler
folder, tid = tempfile.TemporaryDirectory(), threading.get_native_id()
rights = Sampler.shared().start(SamplerRequest(os.getpid(), tid, folder.name, 25, True, 50))
def work():
    return sum(range(2000))
""",
    "until = time.monotonic() + 2\nwhile time.monotonic() < until: work()",
    """
cells = CellMap.from_shell(get_ipython())
result = Sampler.shared().stop({}, tid, cells)
import json
stacks = result.stacks
print(json.dumps([rights.stacks, [
    [s.role, s.thread, s.count, [stacks.frames[i][:2] for i in s.frames]] for s in stacks.stacks
] if stacks else [], [cell.execution_count for cell in cells.cells()]]))
""",
)


@pytest.mark.timeout(300)
def test_in_a_real_kernel_only_the_cells_own_frames_are_left() -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    new = nbformat.v4
    book = new.new_notebook(cells=[new.new_code_cell(code) for code in CELLS_RUN])
    root = str(Path(__file__).resolve().parent.parent)
    environment = {**os.environ, "PYTHONPATH": root}
    nbclient.NotebookClient(book, timeout=180, kernel_name="python3").execute(env=environment)
    source, seen, cells = json.loads(book.cells[2].outputs[0]["text"])
    if source != "py-spy":
        pytest.skip("py-spy is not installed or may not attach here")
    assert {role for role, _, _, _ in seen} == {"consumer"}, seen
    counts = {tuple(tuple(frame) for frame in frames): count for _, _, count, frames in seen}
    inner = (("<module>", "In [2]"), ("work", "In [1]"))
    assert counts[inner] > 0.5 * sum(counts.values()), counts
    assert {1, 2} <= set(cells)
