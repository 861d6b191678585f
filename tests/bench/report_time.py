"""From the end of a profiled cell to its report at the front end, and the bytes of that output.

A real kernel, a real loader; the clock is CLOCK_MONOTONIC, which both processes share.
"""

from __future__ import annotations

import json
import statistics
from typing import Any

from tests.bench.kernel import kernel, outputs_of
from tests.bench.measure import print_result

RUNS, QUICK_RUNS = 5, 2
SETUP = """
from tests.bench.workloads import decode_bound
loader = decode_bound(batches=20)
"""
CELL = """
%%ioscope
import time
for batch in loader:
    pass
print("ended", time.monotonic())
"""


def measure(quick: bool) -> dict[str, Any]:
    with kernel() as client:
        outputs_of(client, SETUP)
        runs = [one_report(client) for _ in range(QUICK_RUNS if quick else RUNS)]
    return {
        "report_s": statistics.median(run[0] for run in runs),
        "report_max_s": max(run[0] for run in runs),
        "output_bytes": max(run[1] for run in runs),
    }


def one_report(client: Any) -> tuple[float, int]:
    """Seconds until the last part of the report was there, and its bytes as a notebook saves it."""
    ended_s, shown_s, size = 0.0, 0.0, 0
    for kind, content, arrived_s in outputs_of(client, CELL):
        if kind == "stream" and content["text"].startswith("ended"):
            ended_s = float(content["text"].split()[1])
        elif kind in ("display_data", "update_display_data") and ended_s:
            shown_s, size = arrived_s, size + len(json.dumps(content["data"]))
    if not shown_s:
        raise RuntimeError("the profiled cell showed no report")
    return shown_s - ended_s, size


if __name__ == "__main__":
    print_result(measure, __doc__)
