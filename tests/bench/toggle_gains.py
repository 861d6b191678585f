"""What toggles bring on the cases in the folder that IOSCOPE_CASES names, beside their own fixes.

Not a part of a plain `make bench`: it takes the cases, and about a minute for each that has a
toggle.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.bench.measure import print_result

FOLDER = "IOSCOPE_CASES"
TIMEOUT_S = 240
QUICK_CASES = 2


def measure(quick: bool) -> dict[str, Any]:
    folder = Path(os.environ.get(FOLDER, ""))
    cases = sorted(path.parent for path in folder.glob("*/slow.py")) if folder.name else []
    cases = [case for case in cases if (case / "fixed.py").is_file()]
    if not cases:
        sys.exit(f"{FOLDER} names no folder with cases (a slow.py and a fixed.py in each)")
    found = {}
    for case in cases[: QUICK_CASES if quick else None]:
        found[case.name] = _of(case)
        print(f"  {case.name}: {found[case.name]}", file=sys.stderr, flush=True)
    return {"cases": found}


def _of(case: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.bench.case_gain", str(case.resolve())]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
        found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"why_not": f"not done within {TIMEOUT_S} s"}
    except (ValueError, IndexError):
        last = done.stderr.strip().splitlines()[-1:]
        return {"why_not": f"it failed: {''.join(last)[:200]}"}
    return found


if __name__ == "__main__":
    print_result(measure, __doc__)
