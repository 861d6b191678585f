"""Steps of a Hugging Face loader: as people write it, mapped with torch's format, everything.

A text set and a set of photographs are written to disk once, in a temporary folder. People begin in
two ways: with a list of samples in memory, or with `keep_in_memory=True`. Every run is a process of
its own: it loads the set and times one epoch in random order, by the same code as a trial of a
comparison. Files are in the page cache, for all steps. What is reported:

- samples a second and CPU a sample, without the batches of the start;
- from the call that loads the set to the first batch, in seconds;
- the highest proportional set size (PSS) of the process and its workers, read from outside about
  ten times a second, and the part of it that is no file: mapped files count in a PSS once their
  pages were read, but the system takes those back when it needs memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from jupyter_ioscope.trials.tree import descendants
from tests.bench.hf_sets import WORKERS, make_sets, picture_loader, text_loader
from tests.bench.measure import print_result

# From what people write to everything; the text set has two beginnings.
STEPS = {
    "text": ("list", "memory", "mapped", "everything"),
    "pictures": ("memory", "mapped", "everything"),
}
LOADERS = {"text": text_loader, "pictures": picture_loader}
RUNS, QUICK_RUNS = 3, 1
PART = 0.9  # of an epoch that is timed, after the batches of the start
READ_EVERY_S = 0.1
TIMEOUT_S = 300


def measure(quick: bool) -> dict[str, Any]:
    """Every step of both sets, `RUNS` times in turns."""
    with tempfile.TemporaryDirectory(prefix="ioscope-hf-") as folder:
        call(["make", folder, "quick" if quick else "whole"])
        sets = {kind: steps_of(kind, folder, QUICK_RUNS if quick else RUNS) for kind in STEPS}
    return {"sets": sets, "workers": WORKERS, "load": os.getloadavg()[2]}


def call(arguments: list[str]) -> str:
    command = child_command(arguments)
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=600)
    return done.stdout


def child_command(arguments: list[str]) -> list[str]:
    return [sys.executable, "-m", "tests.bench.hf_steps", "--child", *arguments]


def steps_of(kind: str, folder: str, runs: int) -> dict[str, Any]:
    """step: what -> (median, lowest, highest)"""
    steps = STEPS[kind]
    seen = {step: json.loads(call(["check", folder, kind, step])) for step in steps}
    first = seen[steps[0]]
    assert all(row == first for row in seen.values()), f"the steps differ in samples: {seen}"
    found: dict[str, list[dict[str, float]]] = {step: [] for step in steps}
    for number in range(runs):
        for step in steps if number % 2 == 0 else reversed(steps):
            found[step].append(one_run(kind, step, folder))
    summary: dict[str, Any] = {
        step: {name: spread([row[name] for row in rows]) for name in rows[0]}
        for step, rows in found.items()
    }
    return {"steps": summary, "runs": runs, "samples": first[0]}


def spread(values: list[float]) -> list[float]:
    return [median(values), min(values), max(values)]


def one_run(kind: str, step: str, folder: str) -> dict[str, float]:
    """One process from load to the end of the epoch, its memory read meanwhile."""
    child = subprocess.Popen(
        child_command(["run", folder, kind, step]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n", f"{kind}, {step}: the process did not start"
        before = tree_pss(child.pid)[0]  # the interpreter, torch and datasets
        child.stdin.write("go\n")
        child.stdin.flush()
        peak, peak_own = before, 0
        deadline = time.monotonic() + TIMEOUT_S
        while child.poll() is None and time.monotonic() < deadline:
            whole, own = tree_pss(child.pid)
            peak, peak_own = max(peak, whole), max(peak_own, own)
            with suppress(subprocess.TimeoutExpired):
                child.wait(READ_EVERY_S)
        assert child.returncode == 0, f"{kind}, {step}: ended with {child.returncode}"
        told: dict[str, float] = json.loads(child.stdout.read())
    finally:
        for pid in descendants(child.pid):
            with suppress(OSError):
                os.kill(pid, 9)
        child.kill()
        child.communicate()
    return told | {"before_bytes": before, "peak_bytes": peak, "peak_own_bytes": peak_own}


def tree_pss(pid: int) -> tuple[int, int]:
    """(PSS, the part that is no file's page) of a process and those below it, bytes."""
    whole = own = 0
    for member in (pid, *descendants(pid)):
        with suppress(OSError):  # it has just ended
            for line in Path(f"/proc/{member}/smaps_rollup").read_text().splitlines():
                name, _, rest = line.partition(":")
                if name == "Pss":
                    whole += int(rest.split()[0]) * 1024
                elif name in ("Pss_Anon", "Pss_Shmem"):
                    own += int(rest.split()[0]) * 1024
    return whole, own


# -- in a process of its own ------------------------------------------------------------------


def run(folder: str, kind: str, step: str) -> dict[str, float]:
    """One epoch as a trial times it: batches of the start are not counted."""
    import datasets
    from torch.utils.data import DataLoader  # noqa: F401  imported before the clock starts

    from jupyter_ioscope.trials.spec import spec_of
    from jupyter_ioscope.trials.trial import Plan, timed

    datasets.disable_progress_bars()
    loader_of = LOADERS[kind]
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.perf_counter()
    spec = spec_of(loader_of(folder, step))
    made_s = time.perf_counter() - start
    rows = len(spec.dataset)
    plan = Plan("steady", seed=0, discard=spec.discard, samples=int(PART * rows), max_s=TIMEOUT_S)
    found = timed(lambda message: None, lambda: False, "", spec, plan, learn=False)
    return {
        "first_s": made_s + found["first_batch_s"],
        "samples_per_s": found["samples"] / found["steady_s"],
        "cpu_ms": 1e3 * found["cpu_s"] / found["samples"],
    }


def checked(folder: str, kind: str, step: str) -> list[int]:
    """Samples of an epoch and the sum of what they hold: equal for all steps of a set."""
    column = {"text": "input_ids", "pictures": "label"}[kind]
    samples = total = 0
    for batch in LOADERS[kind](folder, step):
        samples += len(batch[column])
        total += int(batch[column].sum())
    return [samples, total]


def child(arguments: list[str]) -> None:
    if arguments[0] == "make":
        make_sets(arguments[1], arguments[2] == "quick")
    else:
        called = run if arguments[0] == "run" else checked
        print(json.dumps(called(*arguments[1:])))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2:])
    else:
        print_result(measure, __doc__)
