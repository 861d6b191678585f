"""Rows of the section on what toggles bring on cases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.bench.row import Row

GAINS_NOTE = """\
Cases are complaints from forums as small loaders, each with a fix by hand. For each the first
toggle that the report names and that applies was compared, and the fix. *Reached* is the part of
the time that the fix saves which the toggle saves, too: (1 - 1 / ratio) of both. Cases without a
toggle are left out: their fix is another line of code, and the report says which. A fix that gives
other batches than the slow loader (other rows, another unit) has no ratio to it.
"""
GOAL = 0.8
FASTER_GOAL = 0.95


def toggle_gain_rows(result: dict[str, Any]) -> Iterator[Row]:
    """A row a case, then how many were found faster, and how many gain enough."""
    rows = {name: row for name, row in result["cases"].items() if "toggle" in row}
    for row in rows.values():
        toggled, fixed = row["with_toggle"], comparable(row)
        by_hand = f"fix × {fixed['ratio']:.2f}" if fixed else "the fix gives other batches"
        yield Row(
            f"{row['cause'].replace('_', ' ')}: `{row['toggle']}`",
            f"{toggled['verdict']}, × {toggled['ratio']:.2f}",
            f"{toggled['low']:.2f} to {toggled['high']:.2f}; {by_hand}; data {_data(toggled)}",
            "",
            f"{part:.0%}" if (part := reached_part(row)) is not None else "",
        )
    helped = [row for row in rows.values() if _helps(row)]
    faster = sum(row["with_toggle"]["verdict"] == "faster" for row in helped)
    parts = [part for row in helped if (part := reached_part(row)) is not None]
    if helped:
        share = faster / len(helped)
        yield Row(
            "cases that their fix makes faster, and the toggle called faster",
            f"{faster} of {len(helped)}", "", f"at least {FASTER_GOAL:.0%}",
            "met" if share >= FASTER_GOAL else "not met",
        )  # fmt: skip
    if parts:
        enough = sum(part >= GOAL for part in parts)
        yield Row(
            "of these, the toggle saves so much of what the fix saves", f"{enough} of {len(parts)}",
            "", f"at least {GOAL:.0%} each", "met" if enough == len(parts) else "not met",
        )  # fmt: skip


def reached_part(row: dict[str, Any]) -> float | None:
    """The part of the fix's gain that the toggle brings; None where the fix saves nothing."""
    fix = comparable(row)
    if fix is None or fix["ratio"] <= 1:
        return None
    toggled, fixed = (1 - 1 / float(one["ratio"]) for one in (row["with_toggle"], fix))
    return toggled / fixed


def comparable(row: dict[str, Any]) -> dict[str, Any] | None:
    """What was measured of the fix; None where it is no loader, or does not deliver the same."""
    fix: dict[str, Any] | None = row["fixed"]
    return fix if fix and fix["same_data"] != "different" else None


def _helps(row: dict[str, Any]) -> bool:
    """Whether there is something to be found: the fix is faster, or cannot be compared."""
    fix = comparable(row)
    return fix is None or fix["low"] > 1


def _data(told: dict[str, Any]) -> str:
    return str(told["same_data"]).replace("_", " ")
