"""When the kernel itself is killed, its trials end with it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from torch.utils.data import DataLoader

from jupyter_ioscope.trials.build import WithChanges, build
from jupyter_ioscope.trials.spec import spec_of
from tests.trial_loaders import Sleeping

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="forked children need Linux"),
]


def test_a_killed_kernel_takes_its_trials_along(tmp_path: Path) -> None:
    program = (
        "import os, signal, threading\n"
        "from torch.utils.data import DataLoader\n"
        "from tests.trial_loaders import Sleeping\n"
        "from jupyter_ioscope.trials import tree\n"
        "from jupyter_ioscope.trials.compare import compare\n"
        "def kill(progress):\n"
        "    below = tree.descendants(os.getpid())\n"
        "    if progress.state == 'running' and len(below) >= 3:\n"
        "        print(*below, flush=True)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "one = DataLoader(Sleeping(), 4, num_workers=2, multiprocessing_context='fork')\n"
        "compare(one, toggles=['prefetch'], budget_s=20, on_progress=kill)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},  # what a killed program leaves lies there
    )
    assert done.returncode == -9, done.stderr
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) >= 3
    until = time.monotonic() + 60
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < until, "trial processes outlive their kernel"
        time.sleep(0.02)


WORKER = """
import os, time
from jupyter_ioscope.trials.build import WithChanges
open("pid", "w").write(str(os.getpid()))
while not os.path.exists("go"):  # a worker that loads its dataset
    time.sleep(0.01)
WithChanges((), None)(0)
open("works", "w").close()
time.sleep(60)
"""


@pytest.mark.parametrize("killed", ["while it starts", "while it works"])
def test_a_spawned_worker_ends_with_a_parent_that_is_killed(tmp_path: Path, killed: str) -> None:
    program = (
        "import multiprocessing, time\n"
        f"process = multiprocessing.get_context('spawn').Process(target=exec, args=({WORKER!r},))\n"
        "process.start()\n"
        "time.sleep(60)\n"
    )
    there = {**os.environ, "PYTHONPATH": os.getcwd()}
    with subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, env=there) as parent:
        pid = int(written(tmp_path / "pid"))
        if killed == "while it works":
            (tmp_path / "go").touch()
            written(tmp_path / "works", empty=True)
        parent.kill()
    (tmp_path / "go").touch()
    until = time.monotonic() + 60
    while alive(pid):
        assert time.monotonic() < until, "a worker outlives its parent"
        time.sleep(0.02)
    assert (tmp_path / "works").exists() == (killed == "while it works")


def written(path: Path, empty: bool = False) -> str:
    until = time.monotonic() + 60
    while not path.exists() or not (empty or path.read_text()):
        assert time.monotonic() < until, f"{path.name} is not written"
        time.sleep(0.01)
    return path.read_text()


def test_workers_that_are_not_forked_are_told_to_end_with_their_parent() -> None:
    for method, told in (("spawn", True), ("forkserver", True), ("fork", False)):
        loader = DataLoader(Sleeping(2), num_workers=1, multiprocessing_context=method)
        assert isinstance(build(spec_of(loader)).worker_init_fn, WithChanges) == told


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
