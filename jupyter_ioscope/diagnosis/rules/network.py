"""Workers wait for a server: on a socket, or behind a network file system."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._blocked import blocked, overlap_advice
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent

_FAR = 0.5  # of the opens in fetches, from which the waits for files count as network
_ADVICE = (
    " Asking for several samples in one request, or keeping what was fetched on a local disk, "
    "removes the wait."
)


def judge(facts: Facts) -> Finding | None:
    """Blocked on a socket, in a poll, or on files of a network or FUSE file system: those waits
    look like waits for a disk, and are none."""
    far = _far(facts)
    if far >= _FAR and facts.batches and facts.part_ns("disk"):
        return _behind_files(facts, far)
    return blocked(
        facts,
        "network",
        cause="network_latency",
        title=f"{_words.waiting(facts)} for the network",
        advice=overlap_advice(facts) + _ADVICE,
        toggles=("workers", "prefetch"),
        alone_too=True,
    )


def _far(facts: Facts) -> float:
    """Part of the opens in fetches that went to a network file system; 0 where unknown."""
    try:
        return facts.storage.network_fraction
    except NotMeasuredError:
        return 0.0


def _behind_files(facts: Facts, far: float) -> Finding:
    kind = facts.storage.filesystems[0][0]
    return finding(
        facts,
        facts.gain_blocked("network", "disk", "page_fault"),
        cause="network_latency",
        resource="network",
        title=f"{_words.waiting(facts)} for a network file system",
        evidence=(
            f"{percent(far)} of the files that fetches opened are on a network file system "
            f"({kind}).",
            _words.part_line(facts, "disk"),
            _words.where_line(facts),
        ),
        advice="Copy the data to a local disk once, or read few large files instead of many small "
        "ones: every open and read crosses the network. " + overlap_advice(facts),
        toggles=("local_copy", "workers", "prefetch"),
        where=facts.where(),
        refines=("disk_latency", "disk_bandwidth", "page_fault_io"),
    )


RULE = Rule("network", judge)
