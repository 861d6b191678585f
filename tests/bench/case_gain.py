"""What the first toggle that fits a case brings, beside its own fix.

`python -m tests.bench.case_gain FOLDER` profiles `slow.py`, compares it under the toggle that the
first cause with one names, and compares it with `fixed.py`; the step is the recorded one. A process
of its own for each case: what one leaves warm, open or imported is no other's.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import jupyter_ioscope as ioscope
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.errors import IoscopeError
from jupyter_ioscope.model.comparison import Comparison
from tests.accuracy.one import loaded, profiled

BUDGET_S = 20.0


def measure(case: Path) -> dict[str, Any]:
    """The verdicts and ratios, or why there are none."""
    slow, fixed = (loaded({"source": str(case / f"{name}.py")}) for name in ("slow", "fixed"))
    for module in (slow, fixed):
        if hasattr(module, "prepare"):
            module.prepare()
    recording, error = profiled(slow, False)
    if error:
        return {"why_not": f"the loop ended with {error}"}
    findings = recording.diagnosis.findings
    cause = findings[0].cause if findings else ""
    names = [name for row in findings[:2] for name in row.toggles]
    toggled, why = None, "its causes name no toggle"
    for name in dict.fromkeys(names):
        try:
            toggled = recording.compare([name], budget_s=BUDGET_S)
            break
        except IoscopeError as refused:
            why = str(refused)
    if toggled is None:
        return {"cause": cause, "why_not": why}
    step_s = Facts(recording.profile).step_s
    found = {"cause": cause, "toggle": name, "with_toggle": _told(toggled), "fixed": None}
    with contextlib.suppress(IoscopeError):  # a fix of another kind: no DataLoader any more
        by_hand = ioscope.compare(
            recording.main_loader, fixed.make_loader(), budget_s=BUDGET_S, step_s=step_s
        )
        found["fixed"] = _told(by_hand)
    return found


def _told(found: Comparison) -> dict[str, Any]:
    return {
        "verdict": found.verdict,
        "ratio": found.ratio,
        "low": found.ratio_low,
        "high": found.ratio_high,
        "same_data": found.same_data.verdict,
    }


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]))))
