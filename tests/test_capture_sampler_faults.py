"""The helper process where something is missing, refused, killed or hung: stated, never raised."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_ioscope.capture import stacks
from jupyter_ioscope.capture.sampler import Sampler
from jupyter_ioscope.model.readings import STATES
from tests.sampler_answers import request_for, stopped, thread_of

pytestmark = pytest.mark.timeout(300)
needs_linux = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
HERE = os.getpid()


@pytest.fixture
def sampler() -> Iterator[Sampler]:
    made = Sampler()
    yield made
    made.close()


def _some_function(seconds: float) -> None:
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        sum(range(1000))


def _py_spies_below(pid: int) -> list[int]:
    found = []
    for path in Path(f"/proc/{pid}/task/{pid}").glob("children"):
        found += [int(part) for part in path.read_text().split()]
    return found


@needs_linux
def test_a_killed_py_spy_is_a_stated_gap_and_the_rest_works(
    sampler: Sampler, tmp_path: Path
) -> None:
    rights = sampler.start(request_for(tmp_path, take_stacks=True))
    if rights.stacks != "py-spy":
        pytest.skip(f"no py-spy here: {rights.reason}")
    for pid in _py_spies_below(rights.helper_pid):
        os.kill(pid, signal.SIGKILL)
    time.sleep(0.3)
    result = stopped(sampler)
    assert result.stacks is None
    assert any(gap.what == "stacks" and "killed" in gap.reason for gap in result.gaps)
    assert thread_of(result, "consumer").states


@needs_linux
def test_a_missing_py_spy_means_stacks_from_inside(
    sampler: Sampler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    python = empty / "python"
    python.symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setenv("PYTHONHOME", sys.base_prefix)
    rights = sampler.start(request_for(tmp_path, take_stacks=True))
    assert rights.stacks == "in-process"
    own = stacks.InProcessStacks(stacks.stack_file(str(tmp_path)), 100)
    own.start()
    _some_function(0.4)
    own.stop()
    result = stopped(sampler)
    assert result.stacks is not None
    assert result.stacks.source == "in-process"
    assert "_some_function" in {frame.name for frame in result.stacks.frames}
    assert {s.role for s in result.stacks.stacks} >= {"consumer"}
    reasons = {gap.what: gap.reason for gap in result.gaps}
    assert "not installed" in reasons["stacks from outside (py-spy)"]


REFUSED = """
import json, os, tempfile, threading, time
from jupyter_ioscope.capture import stacks
from jupyter_ioscope.capture.cells import CellMap
from jupyter_ioscope.capture.request import SamplerRequest
from jupyter_ioscope.capture.sampler import Sampler
def user_function():
    until = time.monotonic() + 0.8
    while time.monotonic() < until: sum(range(1000))
    time.sleep(0.5)
with tempfile.TemporaryDirectory() as folder:
    tid = threading.get_native_id()
    rights = Sampler.shared().start(SamplerRequest(os.getpid(), tid, folder, 50, True, 50))
    own = stacks.InProcessStacks(stacks.stack_file(folder), 50)
    own.start()
    used_ns = time.thread_time_ns()
    user_function()
    used_ns = time.thread_time_ns() - used_ns
    own.stop()
    result = Sampler.shared().stop({}, tid, CellMap())
consumer = next(t for t in result.threads if t.role == "consumer")
print(json.dumps({
    "attach": rights.attach, "syscall": rights.syscall, "stacks": rights.stacks,
    "reason": rights.reason, "tier": result.tier, "source": result.stacks.source,
    "frames": [frame.name for frame in result.stacks.frames],
    "gaps": result.gaps, "states": consumer.states, "run_ns": consumer.run_ns, "used_ns": used_ns,
    "series": sorted(result.series),
}))
"""


@needs_linux
def test_where_attaching_is_refused_states_go_on_and_stacks_come_from_inside() -> None:
    from tests.test_capture_rights import without_right

    done = without_right(REFUSED)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert (seen["attach"], seen["syscall"], seen["stacks"]) == (False, False, "in-process")
    assert (seen["tier"], seen["source"]) == ("no_ptrace", "in-process")
    assert "lacks the right" in seen["reason"]
    assert "user_function" in seen["frames"]
    states = Counter(STATES[state] for state in seen["states"])
    assert states["running"] > 3
    assert sum(states.values()) - states["running"] > 2
    assert 0 <= seen["run_ns"] - seen["used_ns"] < 0.15e9
    gaps = dict(seen["gaps"])
    assert "system calls" in gaps["reasons of waits, exactly"]
    assert "lacks the right" in gaps["stacks from outside (py-spy)"]
    assert "tree_cpu_ns" in seen["series"]


def test_without_proc_everything_is_a_stated_gap(tmp_path: Path) -> None:
    sampler = Sampler(proc=str(tmp_path / "none"), sys_root=str(tmp_path / "none"))
    rights = sampler.start(request_for(tmp_path, take_stacks=True))
    own = stacks.InProcessStacks(stacks.stack_file(str(tmp_path)), 100)
    own.start()
    _some_function(0.3)
    own.stop()
    result = stopped(sampler)
    sampler.close()
    assert not rights.attach
    assert rights.stacks == "in-process"
    assert rights.reason == "no /proc on this system"
    assert result.tier == "in_process"
    assert result.threads == ()
    reasons = {gap.what: gap.reason for gap in result.gaps}
    assert reasons["thread states and exact thread times"] == "no /proc on this system"
    assert result.stacks is not None
    assert result.stacks.source == "in-process"


def test_a_killed_helper_gives_gaps_and_the_next_start_a_new_one(
    sampler: Sampler, tmp_path: Path
) -> None:
    first = sampler.start(request_for(tmp_path))
    os.kill(first.helper_pid, signal.SIGKILL)
    result = stopped(sampler)
    assert result.tier == "in_process"
    assert any("ended early" in gap.reason for gap in result.gaps)
    second = sampler.start(request_for(tmp_path))
    assert second.helper_pid not in (0, first.helper_pid)
    assert stopped(sampler).tier != "in_process" or not Path("/proc/self").exists()


def test_a_hung_helper_is_given_up_and_leaves_no_process(
    sampler: Sampler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupyter_ioscope.capture.sampler._STOP_S", 0.3)
    rights = sampler.start(request_for(tmp_path))
    os.kill(rights.helper_pid, signal.SIGSTOP)
    result = stopped(sampler)
    assert any("did not answer" in gap.reason for gap in result.gaps)
    with pytest.raises(ProcessLookupError):
        os.kill(rights.helper_pid, 0)


def test_a_helper_that_cannot_be_started_is_a_stated_gap(
    sampler: Sampler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    rights = sampler.start(request_for(tmp_path, take_stacks=True))
    assert (rights.attach, rights.helper_pid, rights.stacks) == (False, 0, "in-process")
    result = stopped(sampler)
    assert result.tier == "in_process"
    assert any("could not be started" in gap.reason for gap in result.gaps)


def test_a_stop_without_a_start_is_a_stated_gap(sampler: Sampler) -> None:
    result = stopped(sampler)
    assert result.tier == "in_process"
    assert result.gaps


ABANDON = """
import os, sys, tempfile, threading, time
from jupyter_ioscope.capture.request import SamplerRequest
from jupyter_ioscope.capture.sampler import Sampler
request = SamplerRequest(os.getpid(), threading.get_native_id(), tempfile.gettempdir(), 25, True)
rights = Sampler.shared().start(request)
worker = os.fork()
if worker == 0:
    os.closerange(1, 3)  # nobody shall wait for this one
    time.sleep(30)  # a worker that holds the pipe to the helper open
    os._exit(0)
with open(f"/proc/{rights.helper_pid}/task/{rights.helper_pid}/children") as children:
    print(worker, rights.helper_pid, children.read(), flush=True)
os.kill(os.getpid(), 9)
"""


@needs_linux
def test_the_helper_and_py_spy_end_when_the_kernel_is_killed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ABANDON],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        timeout=180,
        start_new_session=True,
    )
    worker, *ours = (int(part) for part in done.stdout.split())
    try:
        deadline_s = time.monotonic() + 10
        while time.monotonic() < deadline_s and any(_lives(pid) for pid in ours):
            time.sleep(0.05)
        assert _lives(worker)
        assert not [pid for pid in ours if _lives(pid)]
    finally:
        os.kill(worker, signal.SIGKILL)


RECORDING = """
import os
from jupyter_ioscope import api
api.profile().start()
os.kill(os.getpid(), 9)
"""


@needs_linux
def test_a_killed_kernel_leaves_no_folder_and_nothing_else_is_removed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    subprocess.run(
        [sys.executable, "-c", RECORDING],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        timeout=180,
        start_new_session=True,
        check=False,
    )
    deadline_s = time.monotonic() + 10
    while time.monotonic() < deadline_s and list(tmp_path.glob("ioscope-*")):
        time.sleep(0.05)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def _lives(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


FORKED = """
import os, tempfile, threading, warnings
warnings.simplefilter("error")
from jupyter_ioscope.capture.cells import CellMap
from jupyter_ioscope.capture.request import SamplerRequest
from jupyter_ioscope.capture.sampler import Sampler
def helper():
    request = SamplerRequest(os.getpid(), os.getpid(), tempfile.gettempdir(), 25, False)
    return Sampler.shared().start(request).helper_pid
mine = helper()
child = os.fork()
if child == 0:
    other = helper()
    Sampler.shared().close()
    os._exit(0 if other not in (0, mine) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
result = Sampler.shared().stop({}, os.getpid(), CellMap())
assert result.tier != "in_process", result.gaps
os.kill(mine, 0)
print("fine")
"""


@needs_linux
def test_a_forked_child_has_a_helper_of_its_own_and_leaves_the_parents_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=180
    )
    assert done.stdout == "fine\n", done.stderr
    assert done.stderr == ""


@needs_linux
def test_a_file_beside_the_notebook_cannot_hide_a_library_of_the_helper(tmp_path: Path) -> None:
    for name in ("json.py", "select.py", "argparse.py", "platform.py"):
        (tmp_path / name).write_text("raise SystemExit('the wrong file')\n")
    code = (
        "import sys, os; sys.path.remove('')\n"
        "from jupyter_ioscope.capture.request import SamplerRequest\n"
        "from jupyter_ioscope.capture.sampler import Sampler\n"
        "r = Sampler().start(SamplerRequest(os.getpid(), os.getpid(), '.', 25, False))\n"
        "print(r.helper_pid > 0)\n"
    )
    root = str(Path(__file__).resolve().parent.parent)
    environment = {**os.environ, "PYTHONPATH": root}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.stdout == "True\n", done.stderr


@needs_linux
def test_closing_leaves_no_process_thread_descriptor_or_file(tmp_path: Path) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    threads, before = threading.active_count(), descriptors()
    sampler = Sampler()
    rights = sampler.start(request_for(tmp_path, take_stacks=True))
    time.sleep(0.2)
    stopped(sampler)
    sampler.close()
    assert not _lives(rights.helper_pid)
    assert descriptors() == before
    assert threading.active_count() == threads
    assert list(tmp_path.iterdir()) == []
