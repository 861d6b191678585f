"""Workers sleep while they get items."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules._blocked import blocked, overlap_advice
from jupyter_ioscope.diagnosis.rules._rule import Rule
from jupyter_ioscope.model.diagnosis import Finding


def judge(facts: Facts) -> Finding | None:
    """A sleep in item code: a rate limit, a retry, a stand-in for a slow source.

    Its label is that of waits one could overlap. Nothing was seen on a socket or a disk, so the
    labels of storage would claim more than was measured.
    """
    return blocked(
        facts,
        "sleep",
        cause="no_workers_latency_bound",
        title="Workers sleep while they get items, too few of them at a time",
        advice="Find out why the code sleeps (a rate limit, a retry, a poll with a pause). "
        + overlap_advice(facts),
        toggles=("workers", "prefetch"),
    )


RULE = Rule("sleep", judge)
