"""Time of `import ioscope` beyond a bare interpreter, and which heavy packages it loads."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from typing import Any

from tests.bench.measure import print_result

RUNS, QUICK_RUNS = 25, 7
HEAVY = ("torch", "datasets", "numpy", "plotly", "pandas", "matplotlib", "anywidget")


def measure(quick: bool) -> dict[str, Any]:
    runs = QUICK_RUNS if quick else RUNS
    bare, ours = [], []
    for _ in range(runs):
        bare.append(run_s("pass"))
        ours.append(run_s("import ioscope"))
    loaded = subprocess.run(
        [sys.executable, "-c", f"import sys, ioscope; print(*set({HEAVY!r}) & set(sys.modules))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    extra_ms = 1e3 * (statistics.median(ours) - statistics.median(bare))
    return {"import_ms": extra_ms, "bare_ms": 1e3 * statistics.median(bare), "loads": loaded}


def run_s(code: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


if __name__ == "__main__":
    print_result(measure, __doc__)
