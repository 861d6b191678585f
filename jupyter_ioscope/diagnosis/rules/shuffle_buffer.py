"""A shuffle buffer of a stream is filled before the first batch."""

from __future__ import annotations

from statistics import median

from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.hf_facts import GENERAL, hf_facts
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import seconds

# A first fetch this many times as long as usual ones filled something.
FAR_LONGER = 5
# Any buffer costs something: less than this is the price of shuffling.
LEAST_NS, LEAST_SHARE = 100_000_000, 0.15
_DECODES_FIRST = ("Mapped", "Filtered")


def judge(facts: Facts) -> Finding | None:
    """What of the first fetch of each epoch read rows that lay in the buffer when the loop was
    left. A stream read to its end needs every row anyway."""
    known = hf_facts(facts)
    size = known.number("shuffle_buffer") if known else -1
    if known is None or size <= 1 or len(facts.batches) < 3:
        return None
    left = [row for row in facts.profile.epochs if facts.is_main(row.loader) and row.end_ns is None]
    firsts = []
    for epoch in left:
        rows = [row for row in facts.batches if row.epoch == epoch.epoch]
        if len(rows) > 1:
            made = [facts.made[row.batch].fetch_ns if row.batch in facts.made else row.wait_ns
                    for row in rows]  # fmt: skip
            if made[0] > FAR_LONGER * median(made[1:]):
                firsts.append(made[0])
    if not firsts:
        return None
    batch = facts.samples_per_batch
    filled_ns = sum(firsts) * size / (size + batch)
    if filled_ns < max(LEAST_NS, LEAST_SHARE * facts.loop.wall_ns):
        return None
    first = median(firsts) / 1e9
    chain = facts.loader.fact("stream")
    inside = chain.partition("BufferShuffled")[2]
    decoded = bool(facts.loader.fact("decoded")) or any(name in inside for name in _DECODES_FIRST)
    each = max(1, facts.workers)
    return finding(
        facts,
        Gain.of(min(1.0, filled_ns / facts.loop.wall_ns), 0.05),
        cause="shuffle_buffer_fill",
        resource="start_up",
        title=f"The shuffle buffer of {size:,} rows is filled before the first batch",
        evidence=(
            f"The first fetch took {seconds(first)}, later ones "
            f"{seconds(median(row.fetch_ns for row in facts.fetches) / 1e9)} as a rule.",
            f"shuffle(buffer_size={size:,}): that many rows are read before one is given"
            + (f", in each of the {each} workers." if each > 1 else "."),
            "Rows are transformed or decoded before they enter the buffer." if decoded else "",
        ),
        advice=f"Use a smaller buffer (buffer_size={max(100, round(batch) * 4):,}) and more "
        "shards: their order is shuffled as well, at no cost."
        + (
            " Shuffle before map, filter and decoding, so that the buffer holds raw rows."
            if decoded
            else ""
        ),
        refines=(*GENERAL, "no_workers_latency_bound", "network_latency", "disk_latency",
                 "blocked_unseen"),
    )  # fmt: skip


RULE = Rule("shuffle_buffer", judge)
