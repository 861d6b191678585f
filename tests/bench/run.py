"""`make bench`: runs every measuring script and writes the table in notebooks/measurements.md.

python -m tests.bench.run               about 65 minutes on two cores
python -m tests.bench.run --quick       two or three minutes, wider intervals
python -m tests.bench.run slowdown      only these; the page keeps all other sections
python -m tests.bench.run toggle_gains  on the cases in the folder IOSCOPE_CASES, half an hour

Every result is kept as soon as it is there. A section that was not measured now stays as it is,
with the date and the machine of its own run, also where its raw results lie on another machine.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.bench.measure import machine
from tests.bench.merge import merged

SCRIPTS = (
    "import_time",
    "helpers",
    "report_time",
    "picture",
    "live_panel",
    "live_updates",
    "slowdown",
    "instructions",
    "recording",
    "comparisons",
    "leaks",
    "settings",
    "blocked_stacks",
    "sample_cache",
    "storage_fio",
    "block_trace",
    "hf_steps",
)
# Only by name: they take what is not here.
ON_DEMAND = ("toggle_gains",)
TIMEOUT_S = 1800
ROOT = Path(__file__).parents[2]
RESULTS = ROOT / ".demo" / "measurements.json"
TABLE = ROOT / "notebooks" / "measurements.md"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "scripts", nargs="*", metavar="SCRIPT", help=", ".join((*SCRIPTS, *ON_DEMAND))
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    arguments = parser.parse_args()
    unknown = set(arguments.scripts) - {*SCRIPTS, *ON_DEMAND}
    if unknown:
        parser.error(f"no such script: {', '.join(sorted(unknown))}")

    failed = []
    for name in arguments.scripts or SCRIPTS:
        result = run(name, arguments.quick)
        if result is None:
            failed.append(name)
        else:
            keep(name, result | {"machine": machine(), "quick": arguments.quick})
    print(TABLE.read_text(encoding="utf-8"))
    print(f"Written to {TABLE}")
    for name in failed:
        print(f"{name} failed: its rows are missing or from an earlier run", file=sys.stderr)
    return 1 if failed else 0


def keep(name: str, result: dict[str, Any]) -> None:
    """Put one script's result beside the others and write the page; others may do so meanwhile."""
    result["date"] = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    RESULTS.parent.mkdir(exist_ok=True)
    with open(RESULTS.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        results = earlier_results() | {name: result}
        _replace(RESULTS, json.dumps(results, indent=1))
        earlier = TABLE.read_text(encoding="utf-8") if TABLE.exists() else ""
        _replace(TABLE, merged(results, name, earlier))


def _replace(path: Path, text: str) -> None:
    whole = path.with_name(f".{path.name}.{os.getpid()}")
    whole.write_text(text, encoding="utf-8")
    whole.replace(path)


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
    """All raw results of this machine; what cannot be read is put aside, not written over."""
    try:
        results: dict[str, Any] = json.loads(RESULTS.read_text())
    except FileNotFoundError:
        return {}
    except ValueError:
        RESULTS.replace(RESULTS.with_suffix(".damaged"))
        return {}
    return results


if __name__ == "__main__":
    sys.exit(main())
