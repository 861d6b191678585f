"""`make bench`: runs every measuring script and writes the table in notebooks/measurements.md.

python -m tests.bench.run               about 40 minutes on two cores
python -m tests.bench.run --quick       two or three minutes, wider intervals
python -m tests.bench.run slowdown      only these; the table keeps the other rows
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.bench.measure import machine
from tests.bench.table import page

SCRIPTS = (
    "import_time",
    "helpers",
    "report_time",
    "picture",
    "live_panel",
    "slowdown",
    "recording",
    "comparisons",
    "leaks",
    "settings",
    "blocked_stacks",
    "sample_cache",
    "storage_fio",
    "hf_steps",
)
TIMEOUT_S = 1800
ROOT = Path(__file__).parents[2]
RESULTS = ROOT / ".demo" / "measurements.json"
TABLE = ROOT / "notebooks" / "measurements.md"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT", help=", ".join(SCRIPTS))
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    arguments = parser.parse_args()
    unknown = set(arguments.scripts) - set(SCRIPTS)
    if unknown:
        parser.error(f"no such script: {', '.join(sorted(unknown))}")

    results = earlier_results()
    failed = []
    for name in arguments.scripts or SCRIPTS:
        result = run(name, arguments.quick)
        if result is None:
            failed.append(name)
        else:
            results[name] = result | {"machine": machine(), "quick": arguments.quick}
            results[name]["date"] = time.strftime("%Y-%m-%d", time.gmtime())
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1))
    text = page(results)
    print(text)
    TABLE.write_text(text, encoding="utf-8")
    print(f"Written to {TABLE}")
    for name in failed:
        print(f"{name} failed: its rows are missing or from an earlier run", file=sys.stderr)
    return 1 if failed else 0


def run(name: str, quick: bool) -> dict[str, Any] | None:
    """One script in a process of its own; None if it failed (its error is on the terminal)."""
    print(f"{name} ...", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", f"tests.bench.{name}", *(["--quick"] if quick else [])]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        return None
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def earlier_results() -> dict[str, Any]:
    try:
        results: dict[str, Any] = json.loads(RESULTS.read_text())
    except (OSError, ValueError):
        return {}
    return results


if __name__ == "__main__":
    sys.exit(main())
