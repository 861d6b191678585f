"""Whether workers are started as new interpreters, and until when they were not there yet."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.errors import NotMeasuredError


def spawned(facts: Facts) -> bool:
    """Whether workers are new interpreters that receive the dataset pickled."""
    try:
        loader = facts.loader
    except NotMeasuredError:
        return False
    return loader.num_workers > 0 and loader.start_method not in (None, "fork")


def until_entered_ns(facts: Facts) -> int | None:
    """Over the epochs: from `iter()` until the last worker began its loop (all are started
    before any gets a task); None where a start
    was not recorded."""
    entered: dict[int, int] = {}
    for row in facts.profile.workers:
        if row.entered_ns >= 0 and facts.is_main(row.loader):
            entered[row.epoch] = max(entered.get(row.epoch, row.entered_ns), row.entered_ns)
    if not entered:
        return None
    begins = {row.epoch: row.iter_start_ns for row in facts.profile.epochs}
    return sum(max(0, at - begins.get(epoch, at)) for epoch, at in entered.items())
