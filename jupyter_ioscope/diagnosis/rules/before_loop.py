"""Time between the start of the cell and the start of the loop."""

from __future__ import annotations

from dataclasses import replace

from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import seconds

# Opening a dataset takes some tenths of a second; more, and a good part of the cell, is work.
LEAST_SHARE = 0.3
LEAST_S = 0.3


def judge(facts: Facts) -> Finding | None:
    """What the cell would gain if the loop began at once. `share` is a part of the time from the
    start of the cell to the end of the loop: the loop itself may be short."""
    if not facts.profile.epochs:
        return None
    before_ns, loop_ns = facts.before_ns, facts.loop.wall_ns
    share = before_ns / (before_ns + loop_ns)
    if share < LEAST_SHARE or before_ns < LEAST_S * 1e9:
        return None
    found = finding(
        facts,
        Gain.of(share, 0.0),
        cause="first_batch_setup",
        resource="start_up",
        title="The loop begins late",
        evidence=(
            f"{seconds(before_ns / 1e9)} of the cell passed before the loader was iterated; the "
            f"loop took {seconds(loop_ns / 1e9)}.",
        ),
        advice="Prepare the data once and keep the result: save it, or put it into a cell of its "
        "own. What stands before the loop runs again with every run of this cell.",
    )
    return replace(found, cost_s=before_ns / 1e9)


RULE = Rule("before_loop", judge)
