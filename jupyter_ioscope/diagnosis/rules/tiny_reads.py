"""Files are read in many tiny pieces."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.rules._work import (
    CPU_CAUSES,
    WAIT_CAUSES,
    gain_of_work,
    place_line,
    resource,
    seen_line,
)
from jupyter_ioscope.diagnosis.rules.disk import read_per_sample
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import bytes_text, significant

# A page of the page cache: smaller reads copy less than they cost.
_TINY_BYTES = 4_096
_MANY_CALLS = 16
_KINDS = ("file_read", "file_open")
_MOSTLY = 0.5


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if the bytes came with few large reads."""
    if not facts.batches:
        return None
    storage = facts.storage
    calls = storage.read_calls_per_sample
    if calls < _MANY_CALLS or storage.bytes_per_read_call >= _TINY_BYTES:
        return None
    calls -= 2 * storage.opens_per_sample  # a read that finds the end comes with every file
    if calls < _MANY_CALLS or not facts.work.fraction(*_KINDS)[0] or _each_waits(facts):
        return None
    large = max(1.0, storage.read_bytes_per_sample / (1 << 20))
    return finding(
        facts,
        gain_of_work(facts, *_KINDS, saved=max(0.0, 1 - large / calls)),
        cause="tiny_reads",
        resource=resource(facts),
        title="Files are read in many tiny pieces",
        evidence=(
            f"{significant(calls, 3)} read calls a sample, of "
            f"{bytes_text(storage.bytes_per_read_call)} each.",
            seen_line(facts, "reading", *_KINDS),
            place_line(facts, *_KINDS),
        ),
        advice="Read with a buffer: open(path, 'rb') without buffering=0, or with "
        "buffering=1 << 20, and one read of the whole item instead of many.",
        toggles=("buffered_open",),
        where=facts.work.where(*_KINDS),
        refines=(*CPU_CAUSES, *WAIT_CAUSES, "many_small_files"),
    )


def _each_waits(facts: Facts) -> bool:
    """Whether the device answers each read by itself, past the page cache: what costs is its
    answer, and a buffer would not save one. Behind a page cache most reads find their bytes."""
    samples = sum(max(0, row.samples) for row in facts.fetches)
    waits = sum(row.voluntary_switches for row in facts.fetches)
    if not 0 < _MOSTLY * facts.storage.read_calls_per_sample * samples <= waits:
        return False
    return 0 < _MOSTLY * facts.storage.read_bytes_per_sample <= read_per_sample(facts)


RULE = Rule("tiny_reads", judge)
