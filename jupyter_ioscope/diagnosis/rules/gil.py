"""Fetching or unpacking stands in line for the GIL."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.spread import Z95, together
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent


def judge(facts: Facts) -> Finding | None:
    """Only threads of one process share a GIL: the kernel's, or a worker's that uses threads."""
    if not facts.batches:
        return None
    gain = facts.gain_blocked("gil")
    unpacking = _while_unpacking(facts)
    if not facts.part_ns("gil") and not unpacking.share:
        return None
    share = gain.share + unpacking.share
    error = together(gain.high - gain.share, unpacking.high - unpacking.share) / Z95
    where = "this process" if facts.alone or unpacking.share > gain.share else "the workers"
    return finding(
        facts,
        Gain.of(min(1.0, share), error),
        cause="gil_bound_threads",
        resource="gil",
        title=f"Threads of {where} stand in line for the interpreter lock (GIL)",
        evidence=(
            _words.part_line(facts, "gil") if facts.part_ns("gil") else "",
            f"{percent(unpacking.share)} of the loop's time passed waiting for the GIL in next()."
            if unpacking.share
            else "",
            _words.where_line(facts),
        ),
        advice="Move the Python work that runs beside the loop into worker processes (each has its "
        "own GIL), or stop the background thread while the loop runs.",
        toggles=("workers",) if facts.alone and _words.more_workers(facts) else (),
        where=facts.where(),
    )


def _while_unpacking(facts: Facts) -> Gain:
    """With workers: the consumer waiting for the GIL inside `next()`."""
    main = facts.waits.consumer
    if facts.alone or main is None:
        return Gain(0.0, 0.0, 0.0)
    part = next((row for row in main.parts if row.name == "gil"), None)
    if part is None:
        return Gain(0.0, 0.0, 0.0)
    return Gain.of(part.time_ns / main.wall_ns, part.error_ns / main.wall_ns)


RULE = Rule("gil", judge)
