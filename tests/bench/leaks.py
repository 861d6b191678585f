"""What comparisons leave behind that are cancelled at random moments: processes, threads, shared
memory, temporary files, descriptors. Without workers and with two of them, forked and spawned."""

from __future__ import annotations

import json
import os
import random
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch.utils.data import DataLoader

import jupyter_ioscope as ioscope
from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.trials.forker import forker
from tests.bench.measure import print_result
from tests.leftovers import left_since, now
from tests.trial_loaders import Sleeping

RUNS, QUICK_RUNS = 100, 10
QUICK_LONGEST_S = 1.5
LONGEST_S = 4.0  # until the cancel; a spawned worker takes about two seconds to start
PATIENCE_S = 10.0
BUDGET_S = 15.0  # short, so that many cancels fall between pairs
KINDS: tuple[dict[str, Any], ...] = (
    {"num_workers": 0},
    {"num_workers": 2, "multiprocessing_context": "fork"},
    {"num_workers": 2, "multiprocessing_context": "fork", "persistent_workers": True},
)
_INSIDE = "IOSCOPE_BENCH_INSIDE"
_OWN_SHM = ("mount", "-t", "tmpfs", "shm", "/dev/shm", "&&")
SPAWNED: dict[str, Any] = {"num_workers": 2, "multiprocessing_context": "spawn"}


def measure(quick: bool) -> dict[str, Any]:
    """In a /dev/shm of its own where that is possible: nobody can tell whose a nameless semaphore
    is that another program left."""
    if os.environ.get(_INSIDE) or not _can_unshare():
        own = {"own_shared_memory": bool(os.environ.get(_INSIDE))}
        made = cancelled_runs(QUICK_RUNS, QUICK_LONGEST_S) if quick else cancelled_runs(RUNS)
        return made | own
    inside = [sys.executable, "-m", "tests.bench.leaks", *(["--quick"] if quick else [])]
    command = [*_OWN_SHM, shlex.join(["exec", *inside])]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", " ".join(command)],
        env={**os.environ, _INSIDE: "1"},
        stdout=subprocess.PIPE,
        check=True,
    )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _can_unshare() -> bool:
    command = ["unshare", "--mount", "sh", "-c", " ".join([*_OWN_SHM, "true"])]
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


def cancelled_runs(runs: int, longest_s: float = LONGEST_S, seed: int = 1) -> dict[str, Any]:
    """So many comparisons, one after the other, every tenth with spawned workers. What one leaves
    is counted when it is still there after a while."""
    rng = random.Random(seed)
    forker()  # the thread that starts trials stays for the life of the process
    left: dict[str, int] = {}
    names: list[str] = []
    ends: list[float] = []
    kept = 0
    with _own_temporary_folder():
        for number in range(runs):
            kind = SPAWNED if number % 10 == 9 else KINDS[number % len(KINDS)]
            before = now()
            result, end_s = cancelled_run(kind, rng.uniform(0.02, longest_s))
            kept += result
            ends.append(end_s)
            for what, value in left_since(before, PATIENCE_S).items():
                count = len(value) if isinstance(value, set) else 1
                left[what] = left.get(what, 0) + count
                names.append(f"{what} {value} after {kind}")
    return {
        "runs": runs,
        "left": left,
        "names": names,
        "with_pairs": kept,
        "slowest_end_s": max(ends),
    }


def cancelled_run(kind: dict[str, Any], after_s: float) -> tuple[bool, float]:
    """Whether pairs had been made by then, and how long the end took from the cancel on."""
    cancel = threading.Event()
    pressed: list[float] = []

    def press() -> None:
        pressed.append(time.monotonic())
        cancel.set()

    one, two = (DataLoader(Sleeping(200, 0.001), batch_size=4, **kind) for _ in range(2))
    timer = threading.Timer(after_s, press)
    timer.start()
    made = False
    try:
        made = ioscope.compare(one, two, budget_s=BUDGET_S, cancel=cancel).pairs > 0
    except TrialError as error:
        if "cancelled" not in str(error):
            raise
    ended = time.monotonic()
    timer.cancel()  # it was decided before
    timer.join()
    return made, ended - pressed[0] if pressed else 0.0


@contextmanager
def _own_temporary_folder() -> Iterator[None]:
    """Other programs' temporary files come and go meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        before, tempfile.tempdir = tempfile.tempdir, folder
        try:
            yield
        finally:
            tempfile.tempdir = before


if __name__ == "__main__":
    print_result(measure, __doc__)
