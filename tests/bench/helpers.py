"""CPU of the helper processes while a loader with two workers is profiled, in cores.

Read from /proc by this script, beside what the profile itself reports, so that the report's cost
line is checked as well.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader

import jupyter_ioscope as ioscope
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
        before, started = helper_cpu_s(), time.monotonic()
        batches = load_for(loader, seconds)
        after, wall_s = helper_cpu_s(), time.monotonic() - started
    used = {kind: (after[kind] - before[kind]) / wall_s for kind in after}
    cost, recorded_s = recording.cost, recording.profile.wall_s
    return json.dumps(
        {
            "sampler_cores": used["sampler"],
            "py_spy_cores": used["py-spy"],
            "reported_sampler_cores": cost.sampler_cpu_s / recorded_s,
            "reported_py_spy_cores": cost.stacks_cpu_s / recorded_s,
            "reported_records_cores": cost.records_s / recorded_s,
            "batches": batches,
            "seconds": wall_s,
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
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        used["py-spy" if b"py-spy" in command.split(b"\0")[0] else "sampler"] += process_cpu_s(pid)
    return used


def process_cpu_s(pid: int) -> float:
    """User and system time of a process (fields 14 and 15 of /proc/pid/stat)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def descendants(pid: int) -> list[int]:
    """Every living process below `pid`."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            found += [child, *descendants(child)]
    return found


if __name__ == "__main__":
    print_result(measure, __doc__)
