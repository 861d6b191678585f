"""When the kernel itself is killed, its trials end with it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

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


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
