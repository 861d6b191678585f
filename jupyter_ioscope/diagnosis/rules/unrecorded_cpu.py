"""A cell that makes its data by hand does so on one core."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _unrecorded, _words
from jupyter_ioscope.diagnosis.rules._rule import Rule
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent, significant


def judge(facts: Facts) -> Finding | None:
    """What the cell would gain if all cores made its data. Nothing where all are busy."""
    cell = _unrecorded.unrecorded(facts)
    if cell is None:
        return None
    part = cell.computing_for_data
    if part < _unrecorded.LEAST_PART or cell.all_cores_busy:
        return None
    several = cell.cores >= 2
    saved = _unrecorded.spread_over_cores(cell) if several else 1.0
    return _unrecorded.of_cell(
        cell,
        part * saved,
        cell.error(part) * saved,
        cause="no_workers_cpu_bound" if several else "decode_cpu",
        resource="main_cpu",
        title="The cell makes its data itself, on one core",
        evidence=(
            f"{percent(part)} of the cell's time it computed data for its loop; the process used "
            f"{significant(cell.cores_used, 2)} of {_words.cores_text(facts)}.",
        ),
        advice=f"Use a DataLoader with num_workers={max(1, int(cell.cores))} (or a "
        "ProcessPoolExecutor): each worker keeps a core busy, beside the loop."
        if several
        else f"There is one core only. Make {cell.place or 'the work on each item'} cheaper, or "
        "do it once and keep the result.",
    )


RULE = Rule("unrecorded_cpu", judge, without_batches=True)
