"""Instructions that a batch takes, profiled without stacks over unprofiled, workers included.

Valgrind counts what the processes of the loop execute outside of the kernel. Unlike CPU time this
number is the same on a busy machine: it tells what the profiler itself does in the user's processes
apart from what its helpers do to them by taking turns on the same cores and caches. Both arms run
in processes of their own: the unprofiled one has never seen a profile.

The difference between a long and a short run, over the batches between them, is free of all that
happens once. Needs `valgrind` on the path.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.bench.measure import print_result

# Batches of the short and the long run, and repetitions: polling of queues varies the tiny ones.
RUNS = {"decode-bound": (2, 8, 1), "pure Python": (4, 28, 1), "tiny batches": (100, 1500, 3)}
ARMS = ("unprofiled", "profiled")
SUMMARY = re.compile(r"^summary: (\d+)", re.MULTILINE)


def measure(quick: bool) -> dict[str, Any]:
    if shutil.which("valgrind") is None:
        return {"skipped": "valgrind is not installed"}
    return {name: _workload(name, *plan, quick) for name, plan in RUNS.items()}


def _workload(name: str, short: int, long: int, times: int, quick: bool) -> dict[str, Any]:
    wanted = [
        (arm, batches)
        for _ in range(1 if quick else times)
        for arm in ARMS
        for batches in (long, short)
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        counts = list(pool.map(lambda run: _count(name, *run), wanted))
    each: dict[str, list[float]] = {arm: [] for arm in ARMS}
    for at in range(0, len(wanted), 2):
        each[wanted[at][0]].append((counts[at] - counts[at + 1]) / (long - short))
    ratios = [
        profiled / plain
        for profiled, plain in zip(each["profiled"], each["unprofiled"], strict=True)
    ]
    return {"per_batch": statistics.median(each["unprofiled"]), "ratios": ratios}


def _count(name: str, arm: str, batches: int) -> int:
    """Instructions of the loop's process and its workers, from where the loop begins: a worker's
    count goes on from its parent's."""
    with tempfile.TemporaryDirectory() as folder:
        out = f"--cachegrind-out-file={folder}/%p"
        command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", out, sys.executable, "-m"]
        command += ["tests.bench.counted_loop", name, arm, str(batches)]
        # Valgrind does not know the newest vector instructions that torch would choose.
        environment = {**os.environ, "ATEN_CPU_CAPABILITY": "default", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
        )
        pids = json.loads(done.stdout.splitlines()[-1])
        before, *after = (_instructions(Path(folder, str(pid))) for pid in pids)
        return sum(after) - before * len(after)


def _instructions(file: Path) -> int:
    found = SUMMARY.search(file.read_text(encoding="utf-8", errors="replace"))
    if found is None:
        raise ValueError(f"{file.name}: no summary, the process did not end by itself")
    return int(found.group(1))


if __name__ == "__main__":
    print_result(measure, __doc__)
