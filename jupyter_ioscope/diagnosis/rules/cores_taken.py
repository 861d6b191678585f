"""Other programs of the machine use the cores that the loop wants."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent, significant


def judge(facts: Facts) -> Finding | None:
    """Time that fetches and hand-over stood in line for a core behind programs that are not the
    loop's own. What they stood behind each other belongs to the rule about crowded cores."""
    if not facts.batches:
        return None
    taken = facts.taken_cores
    if taken < _words.FEW_CORES:
        return None
    used = f"{significant(taken, 2)} of {_words.cores_text(facts)}"
    return finding(
        facts,
        facts.gain_queue().times(1 - facts.own_part_of_line),
        cause="cores_taken",
        resource="run_queue",
        title=f"Other programs take the cores ({used})",
        evidence=(_words.taken_line(facts), _words.part_line(facts, "run_queue")),
        advice="Stop what else runs on this machine, or profile again when it is quiet. "
        + _own_need(facts),
    )


def _own_need(facts: Facts) -> str:
    """What the loop can do about it all the same: who needs less of a core waits less for one."""
    try:
        fetching = sum(row.cpu_ns for row in facts.fetches)
    except NotMeasuredError:
        fetching = 0
    carrying = 0
    if not facts.alone:
        feeders = (row.run_ns for row in facts.profile.threads if row.role == "feeder")
        carrying = sum(row.wait_cpu_ns for row in facts.batches) + sum(feeders)
    needs = {
        "getting items": fetching,
        "handing batches over": carrying,
        "your own step": sum(row.step_cpu_ns for row in facts.batches),
    }
    whole, most = sum(needs.values()), max(needs, key=lambda name: needs[name])
    if not whole:
        return "No change to the loader gives these cores back."
    return (
        "Meanwhile only less work helps: what needs no core does not wait for one. Of this loop's "
        f"own CPU {percent(needs[most] / whole)} is {most}."
    )


RULE = Rule("cores_taken", judge)
