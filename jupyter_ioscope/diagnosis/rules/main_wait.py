"""Without workers: waits of one fetch that other fetches could fill."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._block import block_lines
from jupyter_ioscope.diagnosis.rules._remedies import ASKS_MANAGER, asks_manager, sentence
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import WAITS, Finding


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if its fetches never waited for anything but a core or a lock."""
    if not facts.alone:
        return None
    gain = facts.gain_blocked(*WAITS)
    largest = max(WAITS, key=facts.part_ns)
    if not facts.part_ns(largest):
        return None
    # A Manager is one process that serves all who ask: workers would stand in line for it.
    manager = largest == "process" and asks_manager(facts)
    return finding(
        facts,
        gain,
        cause="no_workers_latency_bound",
        resource=largest,
        title="The loop waits for every sample itself, one after the other",
        evidence=(
            _words.part_line(facts, largest),
            _words.per_sample_line(facts, largest),
            *(block_lines(facts) if largest in ("disk", "page_fault") else ()),
            _words.where_line(facts),
        ),
        advice=sentence(ASKS_MANAGER) if manager else _words.workers_that_wait(facts),
        toggles=() if manager else ("workers",),
        where=facts.where(),
    )


RULE = Rule("main_wait", judge)
