"""Workers sleep while they get items."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._blocked import blocked, overlap_advice
from jupyter_ioscope.diagnosis.rules._rule import Rule
from jupyter_ioscope.model.diagnosis import Finding


def judge(facts: Facts) -> Finding | None:
    """A sleep in item code: a rate limit, a retry, a stand-in for a slow source.

    Its label is that of waits one could overlap. Nothing was seen on a socket or a disk, so the
    labels of storage would claim more than was measured.
    """
    if _enough_for_no_step(facts):
        return None
    return blocked(
        facts,
        "sleep",
        cause="no_workers_latency_bound",
        title="Workers sleep while they get items, too few of them at a time",
        advice="Find out why the code sleeps (a rate limit, a retry, a poll with a pause). "
        + overlap_advice(facts),
        toggles=("workers", "prefetch"),
    )


def _enough_for_no_step(facts: Facts) -> bool:
    """A loop that does nothing with its batches waits for them whatever the loader does: more
    workers would make it faster for ever. Nothing is missing where there are as many already as the
    advice for such a loader begins with."""
    main = facts.waits.consumer
    if main is None or facts.alone or facts.workers_without_work:
        return False
    return facts.workers >= _words.first_workers(facts) and main.fraction("step") < _NO_STEP


# Of the loop: what Python's own loop takes.
_NO_STEP = 0.05

RULE = Rule("sleep", judge)
