"""Fetches wait for another process: a child that is started for an item, or one behind a pipe."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._blocked import overlap_advice
from jupyter_ioscope.diagnosis.rules._remedies import ASKS_MANAGER, asks_manager, sentence
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent

PART = "process"
# Of the time that is waited: so much CPU of other processes of the tree, and it is work. On a
# crowded machine they stand in line for most of the rest.
_COMPUTES = 0.3
_START = (
    "Start a program once, at the first item of each process, and keep it; or call a library that "
    "does the same in this process."
)


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if its fetches never waited for another process.

    Where those processes compute, it is work on the cores, which has those labels. Where they wait
    themselves, a loop without workers can overlap that; of workers nothing more was seen than that
    they wait.
    """
    if not facts.batches or not facts.part_ns(PART):
        return None
    computes = _computing(facts)
    if facts.alone and computes < _COMPUTES:
        return None  # one of the waits that workers overlap
    return finding(
        facts,
        facts.gain_blocked(PART),
        cause=_cause(facts, computes),
        resource=PART,
        title=f"{_words.waiting(facts)} for another process"
        + (" that computes" if computes >= _COMPUTES else ""),
        evidence=(
            _words.part_line(facts, PART),
            _words.per_sample_line(facts, PART),
            f"Other processes of this program computed for {percent(computes)} of that time."
            if computes > 0
            else "",
            _words.where_line(facts),
        ),
        advice=_advice(facts, computes),
        toggles=() if asks_manager(facts) else ("workers",),
        where=facts.where(),
        refines=("no_workers_latency_bound",) if computes >= _COMPUTES else (),
    )


def _cause(facts: Facts, computes: float) -> str:
    if computes < _COMPUTES:
        return "blocked_unseen"
    return "no_workers_cpu_bound" if facts.alone else "decode_cpu"


def _advice(facts: Facts, computes: float) -> str:
    if asks_manager(facts):  # one process serves all of them: more that ask do not help
        return sentence(ASKS_MANAGER)
    return f"{_START} {_more(facts, computes)}".strip()


def _more(facts: Facts, computes: float) -> str:
    if computes < _COMPUTES:
        return overlap_advice(facts)
    workers = _words.more_workers(facts)
    return f"Then use num_workers={workers}: one for a core." if workers else ""


def _computing(facts: Facts) -> float:
    """CPU of processes that are neither the loop nor its workers, over the time that is waited."""
    try:
        tree_ns = facts.tree_cores * facts.loop.wall_ns
    except NotMeasuredError:
        return 0.0
    return min(1.0, max(0.0, tree_ns - facts.tree_cpu_ns) / facts.part_ns(PART))


RULE = Rule("another_process", judge)
