"""Fetches stand in line for a lock."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules._blocked import blocked
from jupyter_ioscope.diagnosis.rules._rule import Rule
from jupyter_ioscope.model.diagnosis import Finding


def judge(facts: Facts) -> Finding | None:
    """Blocked on a lock that is not the GIL: shared between processes, a file's, or a thread's."""
    return blocked(
        facts,
        "lock",
        cause="lock_contention",
        title="Fetches stand in line for a lock",
        advice="Give every worker its own file handle, connection or cache instead of one behind a "
        "lock, or hold the lock for less. More workers only make the line longer.",
        alone_too=True,
    )


RULE = Rule("lock", judge)
