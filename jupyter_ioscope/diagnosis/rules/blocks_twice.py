"""The device reads far more than the reads ask for: small pieces, at places between its blocks."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.rules._work import WAIT_CAUSES
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import bytes_text, significant

# A page that is read in two halves by two samples comes once where the page cache keeps it, so
# that reads in order stay at 1; reads that start in the middle of a page bring one page more.
_TIMES = 1.5
_PAGE_BYTES = 4_096
# A whole extra page weighs nothing beside pieces larger than this.
_LARGEST_PIECE = 64 * 1_024


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if the device read only what is asked for, in proportion to bytes.
    Where the time of a request hardly depends on its size that is too much: `low` is a quarter."""
    if not facts.batches:
        return None
    storage = facts.storage
    asked, piece = storage.read_bytes_per_sample, storage.bytes_per_read_call
    brought = storage.device_bytes_per_sample
    if asked < 1 or piece > _LARGEST_PIECE or brought < max(_TIMES * asked, _PAGE_BYTES):
        return None
    times = brought / asked
    if facts.part_ns("page_fault") >= facts.part_ns("disk"):
        return None  # of memory maps, which no read asks for
    gain = facts.gain_blocked("disk").times(1 - 1 / times)
    return finding(
        facts,
        Gain(gain.share, gain.low / 4, gain.high),
        cause="read_amplification",
        resource="disk",
        title="The device reads more than is asked for: blocks are small or begin between pages",
        evidence=(
            f"{bytes_text(brought)} a sample came from the device, {significant(times, 2)} times "
            f"the {bytes_text(asked)} that were asked for, in pieces of {bytes_text(piece)}.",
            _words.part_line(facts, "disk"),
            _words.where_line(facts),
        ),
        advice="Read what lies together in one piece of at least 64 kB, and let records begin at "
        "multiples of 4,096 bytes (pad them when the file is written). For small records at "
        "scattered places: os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM), so that nothing is "
        "read ahead in vain.",
        where=facts.where(),
        toggles=("sample_cache", "buffered_open"),
        refines=(*WAIT_CAUSES, "tiny_reads"),
    )


RULE = Rule("blocks_twice", judge)
