"""Workers wait for pages of memory-mapped files."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules._blocked import blocked, overlap_advice
from jupyter_ioscope.diagnosis.rules._rule import Rule
from jupyter_ioscope.model.diagnosis import Finding


def judge(facts: Facts) -> Finding | None:
    """Blocked outside any system call: a page that had to come from the disk first."""
    if facts.alone or not facts.batches:
        return None
    faults = sum(row.major_faults for row in facts.profile.fetches if row.worker >= 0)
    samples = sum(max(0, row.samples) for row in facts.profile.fetches if row.worker >= 0)
    return blocked(
        facts,
        "page_fault",
        cause="page_fault_io",
        title="Workers wait for pages of memory-mapped files",
        evidence=(
            f"{faults:,} pages had to be read from the disk, {faults / samples:.1f} a sample."
            if samples and faults
            else "",
        ),
        advice="Read the rows of a batch in the order in which they lie in the file, or read them "
        "with ordinary reads. " + overlap_advice(facts),
        toggles=("workers", "prefetch"),
    )


RULE = Rule("page_fault", judge)
