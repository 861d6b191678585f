"""Fetches wait for a disk that others keep busy."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._block import others_line
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.readings import Series
from jupyter_ioscope.units import bytes_text, percent

_MACHINE = ("machine_disk_read_bytes", "machine_disk_write_bytes")
_TREE = ("tree_read_bytes", "tree_write_bytes")
# Others must move more than the loop does, the device must be busy, and it must be real traffic.
_MOST_OF_IT = 0.6
_BUSY = 0.5
_LEAST_BYTES_PER_S = 5e6


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain without others' part of the waits for the disk."""
    if not facts.batches or not (facts.part_ns("disk") or facts.part_ns("page_fault")):
        return None
    gain = facts.gain_blocked("disk", "page_fault")
    machine, tree = _total(facts, _MACHINE), _total(facts, _TREE)
    length_s = max(1e-9, facts.profile.wall_s)
    others = max(0.0, machine - tree)
    busy = min(1.0, _series(facts, "machine_disk_busy_ns").total() / facts.profile.wall_ns)
    part = others / machine if machine else 0.0
    if part < _MOST_OF_IT or busy < _BUSY or others / length_s < _LEAST_BYTES_PER_S:
        return None
    return finding(
        facts,
        gain.times(part),
        cause="noisy_neighbour",
        resource="disk",
        title="Other programs keep the disk busy",
        evidence=(
            f"The disks moved {bytes_text(machine / length_s)} a second; this loop asked for "
            f"{bytes_text(tree / length_s)} of it, others for {percent(part)}.",
            f"The busiest disk was busy for {percent(busy)} of the time.",
            others_line(facts),
            _words.part_line(facts, "disk"),
        ),
        advice="Find the other program (iotop, or ioscope's storage check) and let it end or "
        "pause, copy the data to a disk of its own, or keep it in memory.",
        where=facts.where(),
        refines=("disk_latency", "disk_bandwidth", "page_fault_io", "no_workers_latency_bound"),
    )


def _total(facts: Facts, names: tuple[str, ...]) -> float:
    return sum(_series(facts, name).total() for name in names)


def _series(facts: Facts, name: str) -> Series:
    series = facts.profile.series.get(name)
    if series is None or len(series.values) < 2:
        raise NotMeasuredError("what others read and wrote", "the disks' counters were not read")
    return series


RULE = Rule("noisy_neighbour", judge)
