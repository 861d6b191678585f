"""The thread that pins batches is the limit."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.cycles import Without
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent

# A single thread; from here on it can hardly keep up.
BUSY = 0.6


def judge(facts: Facts) -> Finding | None:
    """Hand-over without the way through the pinning thread: where that is busy, batches stand in
    line for it between the worker and the loop. Without an accelerator torch does not pin at all,
    whatever pin_memory says: then nothing is lost, and there is no such thread."""
    if facts.alone or not facts.loader.pin_memory:
        return None
    rows = [row for row in facts.profile.threads if row.role == "pin_memory"]
    busy_ns = sum(row.run_ns + row.run_queue_ns for row in rows)
    busy = busy_ns / facts.loop.wall_ns
    if busy < BUSY:
        return None
    turns = [turn for epoch in facts.replay.epochs for turn in epoch]
    transit_ns = sum(turn.transit for turn in turns)
    whole_ns = transit_ns + sum(turn.main for turn in turns)
    return finding(
        facts,
        facts.gain(Without(hand_over=transit_ns / whole_ns if whole_ns else 0.0)),
        cause="pin_memory_misuse",
        resource="hand_over",
        title="The thread that pins batches in memory is the limit",
        evidence=(
            f"One thread copies every batch into pinned memory; it was busy for {percent(busy)} of "
            "the loop's time.",
            f"The loop waited for data {percent(facts.waits.wait_fraction)} of the time.",
        ),
        advice="Use pin_memory=False, or hand smaller batches over: few large tensors instead of "
        "many, and the smaller form (uint8 pixels), widened on the accelerator.",
        refines=("ipc_many_tensors", "workers_overhead", "bytes_inflated", "ipc_python_objects"),
    )


RULE = Rule("pin_memory", judge)
