"""Other programs of the machine use the cores that the loop wants."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import significant


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
        advice="Stop what else runs on this machine, or profile again when it is quiet. No change "
        "to the loader gives these cores back.",
    )


RULE = Rule("cores_taken", judge)
