"""From the end of a profiled cell to its report at the front end, and the bytes of that output.

A real kernel, a real loader; the clock is CLOCK_MONOTONIC, which both processes share.
"""

from __future__ import annotations

import json
import statistics
import time
from typing import Any

from jupyter_client.manager import KernelManager

from tests.bench.measure import print_result

RUNS, QUICK_RUNS = 5, 2
TIMEOUT_S = 120
SETUP = """
%load_ext ioscope
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
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=TIMEOUT_S)
        outputs_of(client, SETUP)
        runs = [one_report(client) for _ in range(QUICK_RUNS if quick else RUNS)]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=False)
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


def outputs_of(client: Any, code: str) -> list[tuple[str, dict[str, Any], float]]:
    """Run a cell; its output messages with the time at which each arrived."""
    received: list[tuple[str, dict[str, Any], float]] = []

    def hook(message: dict[str, Any]) -> None:
        received.append((message["msg_type"], message["content"], time.monotonic()))

    reply = client.execute_interactive(code, timeout=TIMEOUT_S, output_hook=hook)
    if reply["content"]["status"] != "ok":
        raise RuntimeError("\n".join(reply["content"]["traceback"]))
    return received


if __name__ == "__main__":
    print_result(measure, __doc__)
