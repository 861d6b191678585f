"""Stacks joined with states: a loader with a known split, against what the profile says of it.

Every sample waits for a slow file (a FUSE mount) in one function, burns CPU in a second, and in two
of five samples waits for another read in a third. The functions take their own time. Each is
compared as the part of the time inside fetches that it was blocked.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from jupyter_ioscope.capture._blocked_read import read_blocked
from jupyter_ioscope.capture.profiler import CaptureOptions, Profiler
from jupyter_ioscope.diagnosis.blocked_stacks import blocked_in
from jupyter_ioscope.model.profile import Profile
from tests.bench.measure import print_result
from tests.io_causes.slow_mount import why_not
from tests.known_split import Split, Truth, iterate, slow_file

WAITS_MS = (1.0, 5.0, 50.0)
SECONDS, QUICK_SECONDS = 15.0, 5.0
WORKERS = 2
NAMES = ("read_rows", "read_labels")


def measure(quick: bool) -> dict[str, Any]:
    if why_not():
        return {"skipped": why_not()}
    seconds = QUICK_SECONDS if quick else SECONDS
    runs = []
    for labels_every in (0, 2):
        for wait_ms in WAITS_MS:
            runs.append(one(wait_ms, labels_every, seconds))
    return {"runs": runs, "cpu_fraction": max(run["cpu_fraction"] for run in runs)}


def one(wait_ms: float, labels_every: int, seconds: float) -> dict[str, Any]:
    """70 % in `read_rows` and 30 % in `burn`, or 50, 30 and 25 % of that in `read_labels`."""
    cpu_ms = wait_ms * (3 / 7 if not labels_every else 0.6)
    sample_ms = wait_ms * (1 + (0.5 if labels_every else 0)) + cpu_ms
    samples = int(seconds * 1e3 / sample_ms) * WORKERS
    with tempfile.TemporaryDirectory() as folder, slow_file(Path(folder), wait_ms) as file:
        dataset = Split(file, samples, cpu_ms, labels_every)
        profile, truth, cpu_fraction = profiled(dataset, max(1, int(200 / sample_ms)))
    fetch_ns = sum(row.fetch_ns for row in profile.fetches)
    places = {row.name.rpartition(".")[2]: row
              for row in blocked_in(profile, "worker", phases=("fetch",))}  # fmt: skip
    found = {}
    for name in NAMES if labels_every else NAMES[:1]:
        place = places[name]
        found[name] = {
            "true": getattr(truth, name) / fetch_ns,
            "said": place.time_ns / fetch_ns,
            "error": place.error * place.time_ns / place.fraction / fetch_ns,
            "mean_wait_ms": place.mean_wait_s * 1e3,
            "instants": place.seen,
        }
    return {"wait_ms": wait_ms, "found": found, "cpu_fraction": cpu_fraction}


def profiled(dataset: Split, batch_size: int) -> tuple[Profile, Truth, float]:
    """(profile, what the functions took, the samplers' CPU as part of a core, a process)."""
    profiler = Profiler(CaptureOptions())
    profiler.start()
    truth = iterate(dataset, WORKERS, batch_size)
    folder = profiler.recorder.session_dir if profiler.recorder else ""
    notes = read_blocked(folder)
    used = [item.cpu_ns / 1e9 / (item.instants / item.rate_hz) for item in notes]
    return profiler.stop(), truth, max(used, default=0.0)


if __name__ == "__main__":
    print_result(measure, __doc__)
