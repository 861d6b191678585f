"""One call of a library makes the data on one core, because the library was told to."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.native_libraries import SwitchedOff, switched_off
from jupyter_ioscope.diagnosis.rules import _unrecorded, _words
from jupyter_ioscope.diagnosis.rules._rule import Rule
from jupyter_ioscope.diagnosis.unrecorded import Unrecorded
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent, significant

# The data is made in one line, more or less: its call is where the time goes.
LEAST_IN_LINE = 0.6


def judge(facts: Facts) -> Finding | None:
    """What the cell would gain if the library used all cores."""
    cell = _unrecorded.unrecorded(facts)
    if cell is None or cell.cores < 2:
        return None
    part = cell.computing_for_data
    calls, in_line = cell.called
    if part < _unrecorded.LEAST_PART or in_line < LEAST_IN_LINE or cell.all_cores_busy:
        return None
    off = switched_off(cell.profile.machine, calls)
    return _finding(facts, cell, part * in_line, off) if off is not None else None


def _finding(facts: Facts, cell: Unrecorded, part: float, off: SwitchedOff) -> Finding:
    saved = _unrecorded.spread_over_cores(cell)
    return _unrecorded.of_cell(
        cell,
        part * saved,
        cell.error(part) * saved,
        cause="native_threads_off",
        resource="main_cpu",
        title=f"{off.library} was told to use one thread",
        evidence=(
            f"{off.setting} is set, and {percent(part)} of the cell's time is in a line that calls "
            f"{off.call.lstrip('.')}.",
            f"The process used {significant(cell.cores_used, 2)} of {_words.cores_text(facts)}.",
        ),
        advice=f"Let {off.library} use all cores: {off.remedy}, set before it is first used. "
        "Where worker processes call it, leave it at one thread a worker and use more workers.",
        refines=("no_workers_cpu_bound", "decode_cpu"),
    )


RULE = Rule("unrecorded_native", judge, without_batches=True)
