"""Threads of a hand-written loader stand in line for the GIL."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _unrecorded, _words
from jupyter_ioscope.diagnosis.rules._rule import Rule
from jupyter_ioscope.diagnosis.unrecorded import Unrecorded
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent, significant

# In line at a time, on average: below it threads meet at the lock now and then.
LEAST_IN_LINE = 0.5
# A line that is shorter than this part of those that run: they run side by side. Where other
# programs take the cores, most that want to run do not, and a thread that looks after the lock
# every 5 ms stands in line for a core in between: measured, 0.4 to 0.7 of them stood in line for
# the lock then, and 0.006 of threads in numpy.
LEAST_PART_OF_RUNNING = 0.6
LEAST_PART_OF_STARVED = 0.25


def judge(facts: Facts) -> Finding | None:
    """What the cell would gain if its Python threads could run side by side, on all cores."""
    cell = _unrecorded.unrecorded(facts)
    if cell is None or not cell.helpers:
        return None
    line, part = cell.in_line_for_gil, cell.states.get("gil", 0.0)
    if line < LEAST_IN_LINE or line < _least_part(cell) * cell.runnable:
        return None
    if part < _unrecorded.LEAST_PART:
        return None
    saved = _unrecorded.spread_over_cores(cell, 1 + line)
    return _unrecorded.of_cell(
        cell,
        part * saved,
        cell.error(part) * saved,
        cause="gil_bound_threads",
        resource="gil",
        title="Threads of this process stand in line for the interpreter lock (GIL)",
        evidence=(
            f"On average {significant(line, 2)} of {len(cell.helpers) + 1} threads stood in line; "
            f"all of them together used {significant(cell.cores_used, 2)} of "
            f"{_words.cores_text(facts)}.",
            f"{percent(part)} of the cell's time its own thread waited for the lock, or for a "
            "thread in that line.",
        ),
        advice="Move the Python work into processes, each with a GIL of its own: a DataLoader with "
        f"num_workers={max(2, int(cell.cores))}, or a ProcessPoolExecutor. Threads help only where "
        "they wait for a disk or a network, or run in numpy, torch and the like.",
        refines=("no_workers_cpu_bound", "decode_cpu"),
    )


def _least_part(cell: Unrecorded) -> float:
    """Between the two limits, by how many of those that wanted to run did."""
    ran = min(1.0, cell.cores_used / cell.cores_wanted) if cell.cores_wanted else 1.0
    return ran * LEAST_PART_OF_RUNNING + (1 - ran) * LEAST_PART_OF_STARVED


RULE = Rule("unrecorded_gil", judge, without_batches=True)
