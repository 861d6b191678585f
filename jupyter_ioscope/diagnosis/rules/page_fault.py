"""Fetches wait for pages of memory-mapped files."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._block import block_lines
from jupyter_ioscope.diagnosis.rules._blocked import blocked, overlap_advice
from jupyter_ioscope.diagnosis.rules._rule import Rule
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import bytes_text

# Around a fault the kernel reads 128 kB (read_ahead_kb), unless it was told that places are random.
# Rows in order use what was read around them: then as much comes as is used.
_AROUND = 4.0
_RANDOM = (
    "For rows at scattered places tell the kernel so: madvise(mmap.MADV_RANDOM) of the map "
    "(array._mmap of a numpy.memmap) brings only the pages that are touched. "
)


def judge(facts: Facts) -> Finding | None:
    """Blocked outside any system call: a page that had to come from the disk first."""
    if not facts.batches:
        return None
    rows = [row for row in facts.profile.fetches if facts.alone or row.worker >= 0]
    faults = sum(row.major_faults for row in rows)
    samples = sum(max(0, row.samples) for row in rows)
    return blocked(
        facts,
        "page_fault",
        cause="page_fault_io",
        title=f"{_words.waiting(facts)} for pages of memory-mapped files",
        evidence=(
            f"{faults:,} pages had to be read from the disk, {faults / samples:.1f} a sample."
            if samples and faults
            else "",
            _around_line(facts),
            *block_lines(facts),
        ),
        advice=(_RANDOM if _around_line(facts) else "")
        + "Read the rows of a batch in the order in which they lie in the file, or read them "
        "with ordinary reads. " + overlap_advice(facts),
        toggles=("workers", "prefetch"),
        alone_too=True,
    )


def _around_line(facts: Facts) -> str:
    """How much more the device brought than samples hold; empty where it is little or unknown."""
    try:
        brought, used = facts.storage.device_bytes_per_sample, facts.storage.used_bytes_per_sample
    except NotMeasuredError:
        return ""
    if brought < _AROUND * max(1.0, used):
        return ""
    return (
        f"{bytes_text(brought)} a sample came from the device, of which it holds "
        f"{bytes_text(used)}: the kernel reads around every fault."
    )


RULE = Rule("page_fault", judge)
