"""A cell that gets its data by hand waits for it, one item after the other."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _unrecorded, _words
from jupyter_ioscope.diagnosis.rules._rule import Rule
from jupyter_ioscope.diagnosis.rules._step import read_bytes, written_bytes
from jupyter_ioscope.diagnosis.unrecorded import Unrecorded
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent

_RESOURCES = {"disk": "disk", "page_fault": "page_fault", "network": "network", "poll": "network",
              "sleep": "sleep"}  # fmt: skip
# What is waited for there is data wherever the code stands; a sleep or a poll may be anything.
_OF_DATA = ("disk", "page_fault", "network")


def judge(facts: Facts) -> Finding | None:
    """What the cell would gain if it never waited for data."""
    cell = _unrecorded.unrecorded(facts)
    if cell is None:
        return None
    parts = _waits(cell, _reads(facts))
    part = sum(parts.values())
    if part < _unrecorded.LEAST_PART:
        return None
    largest = max(parts, key=lambda state: parts[state])
    resource = _RESOURCES[largest]
    return _unrecorded.of_cell(
        cell,
        part,
        cell.error(part),
        cause="no_workers_latency_bound",
        resource=resource,
        title="The cell waits for its data, one item after the other",
        evidence=(
            f"{percent(part)} of the cell's time it waited for data, "
            f"{percent(parts[largest])} {_words.NAMES[resource]}.",
            f"{len(cell.helpers)} other threads of this process took part." if cell.helpers else "",
        ),
        advice="Let several items be waited for at a time: a DataLoader with workers "
        f"(num_workers={max(4, 2 * int(cell.cores))} to begin with), or "
        + ("more threads in the pool." if cell.helpers else "a ThreadPoolExecutor that is a few "
           "items ahead of the loop.")
        + " A waiting thread or worker needs no core.",
    )  # fmt: skip


def _waits(cell: Unrecorded, reads: bool) -> dict[str, float]:
    """Fractions of the cell's time by state in which it waited for data."""
    try:
        of_iterator = cell.waiting_for_data
    except NotMeasuredError:
        of_iterator = 0.0
    found = {}
    for state in _RESOURCES:
        fraction = cell.states.get(state, 0.0)
        certain = state in _OF_DATA and (reads or state != "disk")
        if fraction:
            found[state] = fraction * (1.0 if certain else of_iterator)
    return found


def _reads(facts: Facts) -> bool:
    """Whether files are read rather than written, as far as the counters tell."""
    return read_bytes(facts) >= written_bytes(facts)


RULE = Rule("unrecorded_waits", judge, without_batches=True)
