"""CPU of the helper processes while a loader with two workers is profiled, in cores.

Read from /proc by this script, beside what the profile itself reports, so that the report's cost
line is checked as well.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader

import jupyter_ioscope as ioscope
from jupyter_ioscope.capture.two_pace import QUICK_S
from tests.bench.kernel import kernel, outputs_of
from tests.bench.measure import print_result
from tests.bench.workloads import decode_bound

SECONDS, QUICK_SECONDS = 20, 6
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def measure(quick: bool) -> dict[str, Any]:
    """In a kernel, whose own threads the helpers have to look at as well."""
    code = (
        f"from tests.bench.helpers import here; print(here({QUICK_SECONDS if quick else SECONDS}))"
    )
    with kernel() as client:
        texts = [
            content["text"] for kind, content, _ in outputs_of(client, code) if kind == "stream"
        ]
    result: dict[str, Any] = json.loads("".join(texts).strip().splitlines()[-1])
    return result


def here(seconds: float) -> str:
    """The measurement in this process, as JSON."""
    loader = decode_bound(batches=30)
    with ioscope.profile():  # starts the helper, which is kept
        next(iter(loader))
    with ioscope.profile() as recording:
        start, started_s = helper_cpu_s(), time.monotonic()
        load_for(loader, QUICK_S + 1.0)
        middle, middle_s = helper_cpu_s(), time.monotonic()
        load_for(loader, seconds)
        after, ended_s = helper_cpu_s(), time.monotonic()
    cost, recorded_s = recording.cost, recording.profile.wall_s
    return json.dumps(
        {
            "sampler_cores": (after["sampler"] - start["sampler"]) / (ended_s - started_s),
            "py_spy_first_cores": (middle["py-spy"] - start["py-spy"]) / (middle_s - started_s),
            "py_spy_cores": (after["py-spy"] - middle["py-spy"]) / (ended_s - middle_s),
            "py_spy_mean_cores": (after["py-spy"] - start["py-spy"]) / (ended_s - started_s),
            "reported_sampler_cores": cost.sampler_cpu_s / recorded_s,
            "reported_py_spy_cores": cost.stacks_cpu_s / recorded_s,
            "reported_records_cores": cost.records_s / recorded_s,
            "seconds": ended_s - started_s,
        }
    )


def load_for(loader: DataLoader[Any], seconds: float) -> int:
    """Epoch after epoch until the time is up; then the workers are gone."""
    batches, deadline = 0, time.monotonic() + seconds
    while time.monotonic() < deadline:
        for _ in loader:
            batches += 1
    return batches


def helper_cpu_s() -> dict[str, float]:
    """CPU seconds so far of what runs below this process while it has no workers."""
    used = {"sampler": 0.0, "py-spy": 0.0}
    for pid in descendants(os.getpid()):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            own_s, reaped_s = process_cpu_s(pid)
        except (FileNotFoundError, ProcessLookupError):  # a worker that had not quite ended
            continue
        used["py-spy" if b"py-spy" in command.split(b"\0")[0] else "sampler"] += own_s
        used["py-spy"] += reaped_s  # the helper has no children but py-spy
    return used


def process_cpu_s(pid: int) -> tuple[float, float]:
    """User and system time of a process and of its ended children (/proc/pid/stat, 14 to 17)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system, children_user, children_system = map(int, fields[11:15])
    return (user + system) / TICKS_PER_S, (children_user + children_system) / TICKS_PER_S


def descendants(pid: int) -> list[int]:
    """Every living process below `pid`. Threads and processes may end meanwhile."""
    found: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                for child in map(int, (task / "children").read_text().split()):
                    found += [child, *descendants(child)]
    return found


if __name__ == "__main__":
    print_result(measure, __doc__)
