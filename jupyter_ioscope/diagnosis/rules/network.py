"""Workers wait for a socket."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules._blocked import blocked, overlap_advice
from jupyter_ioscope.diagnosis.rules._rule import Rule
from jupyter_ioscope.model.diagnosis import Finding


def judge(facts: Facts) -> Finding | None:
    """Blocked on a socket, or in a poll, inside a fetch."""
    return blocked(
        facts,
        "network",
        cause="network_latency",
        title="Workers wait for the network",
        advice=overlap_advice(facts) + " Asking for several samples in one request, or keeping "
        "what was fetched on a local disk, removes the wait.",
        toggles=("workers", "prefetch"),
    )


RULE = Rule("network", judge)
