"""Fetches wait for the disk."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._block import block_lines, held_back
from jupyter_ioscope.diagnosis.rules._blocked import blocked, overlap_advice
from jupyter_ioscope.diagnosis.rules._rule import Rule
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import bytes_text

# Above this much read from the device a sample, transferring takes longer than asking: 1 MB is
# 2 ms at 500 MB/s, while a request to a solid-state disk is answered in about 0.1 ms.
LARGE_READ_BYTES = 1_000_000


def judge(facts: Facts) -> Finding | None:
    """Latency when little is read a sample, bandwidth when much is."""
    read = read_per_sample(facts)
    large = read >= LARGE_READ_BYTES
    return blocked(
        facts,
        "disk",
        cause="disk_bandwidth" if large else "disk_latency",
        title=f"{_words.waiting(facts)} for the disk to {'deliver' if large else 'answer'}",
        evidence=(
            f"{bytes_text(read)} a sample were read from the device." if read else "",
            *block_lines(facts),
        ),
        advice=(
            "Read fewer bytes: smaller or compressed files, or a faster disk. Data that fits into "
            "memory is read once only."
            if large
            else overlap_advice(facts) + " Larger reads (many samples in one file) help as well."
        )
        + held_back(facts),
        toggles=("workers", "prefetch", "read_ahead"),
        alone_too=True,
    )


def read_per_sample(facts: Facts) -> float:
    """Bytes read from devices in fetches, a sample; 0 where unknown."""
    try:
        samples = sum(max(0, row.samples) for row in facts.fetches)
        return sum(row.read_blocks for row in facts.fetches) * 512 / samples if samples else 0.0
    except NotMeasuredError:
        return 0.0


RULE = Rule("disk", judge)
