"""Every item is a small file of its own: opening takes longer than reading."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._remedies import LISTS_ONCE, searching, sentence
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.rules._work import (
    CPU_CAUSES,
    WAIT_CAUSES,
    gain_of_work,
    place_line,
    resource,
    seen_line,
)
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import bytes_text, percent, significant

# Up to this size, asking for a file takes longer than its bytes: 64 kB are 0.13 ms at 500 MB/s,
# an open and a read from a solid-state disk take as long, over a network ten times as long.
_SMALL_BYTES = 65_536
_OFTEN = 0.5
_KINDS = ("file_open", "file_stat", "file_read", "image_open", "array_load")


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if items came out of few large files."""
    if not facts.batches:
        return None
    storage = facts.storage
    epochs = max(1, len({row.epoch for row in facts.batches}))
    if storage.opens_per_sample < _OFTEN or storage.distinct_files < _least_files(facts, epochs):
        return None
    size = storage.median_file_bytes
    if size > _SMALL_BYTES or not facts.work.fraction(*_KINDS)[0]:
        return None
    far = storage.network_fraction
    waits = facts.part_ns("disk") + facts.part_ns("network") + facts.part_ns("other")
    waiting = waits > facts.part_ns("cpu")
    searches = searching(facts) > _OFTEN * facts.work.fraction(*_KINDS)[0]
    return finding(
        facts,
        gain_of_work(facts, *_KINDS),
        cause="many_small_files",
        resource=("network" if far > 0.5 else "disk") if waiting else resource(facts),
        title="Every item searches a folder for its file"
        if searches
        else "Every item is a small file of its own",
        evidence=(
            f"{significant(storage.opens_per_sample, 2)} files a sample were opened, "
            f"{storage.distinct_files:,} different ones, half of them below {bytes_text(size)}.",
            seen_line(facts, "opening, reading and closing them", *_KINDS),
            _words.part_line(facts, "disk") if waiting else "",
            f"{percent(far)} of the opens went to a network file system." if far else "",
            place_line(facts, *_KINDS),
        ),
        advice=f"{sentence(LISTS_ONCE)} Then profile again: each item is a small file of its own, "
        "too."
        if searches
        else "Pack the items into few large files (one array file, .tar shards, Arrow, LMDB) "
        "and read them in order." + _meanwhile(facts, waiting),
        toggles=() if searches else _toggles(far, waiting),
        where=facts.work.where(*_KINDS),
        refines=(*CPU_CAUSES, *WAIT_CAUSES, "network_latency"),
    )


def _toggles(far: float, waiting: bool) -> tuple[str, ...]:
    copied = ("packed_files", "local_copy") if far > 0.5 else ("packed_files",)
    return (*copied, "read_ahead", "workers", "prefetch") if waiting else copied


def _least_files(facts: Facts, epochs: int) -> float:
    """Half as many files as samples of one epoch, or as many as were fetched: not one file again
    and again."""
    samples = sum(row.samples for row in facts.fetches if row.samples > 0)
    return min(64.0, 0.25 * samples / epochs)


def _meanwhile(facts: Facts, waiting: bool) -> str:
    if waiting:
        more = max(4, 2 * facts.workers)
        return f" Until then more workers overlap the waits: try num_workers={more}."
    more = _words.more_workers(facts)
    return f" Until then, try num_workers={more}." if more else ""


RULE = Rule("small_files", judge)
