"""Ceilings of where the data comes from: latency, bandwidth, network."""

from __future__ import annotations

from itertools import pairwise
from math import inf

from jupyter_ioscope.diagnosis.ceilings_row import (
    UNKNOWN_RELATIVE,
    as_full_batches,
    ceiling,
    many,
)
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.spread import together
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Ceiling
from jupyter_ioscope.model.readings import Series
from jupyter_ioscope.units import bytes_text, percent, seconds, significant

# A device that is busy for this part of the time, with more than one reader waiting on average,
# gives what it can. Busy with one reader only says that requests follow one another.
_SATURATED = 0.9
_READERS = 1.3
# A rate seen for a moment says that the device can do more only if it is this much higher.
_FASTER = 1.3
_LEAST_BYTES_A_BATCH = 4_096
# Of the fetches' time: less waiting than this is an import in the first fetch, or a pipe.
_LEAST_BLOCKED = 0.02
_WINDOW_NS = 400_000_000


def storage(facts: Facts) -> Ceiling | None:
    """As many readers as now, waiting for nothing but the disk: requests and their latency."""
    return _blocked(facts, "storage", "storage latency", ("disk", "page_fault"), "the disk")


def network(facts: Facts) -> Ceiling | None:
    """The same for sockets."""
    return _blocked(facts, "network", "network latency", ("network",), "the network")


def _blocked(
    facts: Facts, resource: str, label: str, parts: tuple[str, ...], what: str
) -> Ceiling | None:
    facts.need_states()
    blocked_ns = sum(map(facts.part_ns, parts))
    batches = as_full_batches(facts, len(facts.profile.fetches))
    spent_ns = sum(row.fetch_ns for row in facts.fetches)
    if blocked_ns <= _LEAST_BLOCKED * spent_ns:
        return None
    readers = 1 if facts.alone else max(1, facts.workers - facts.workers_without_work)
    rows = [part for row in facts.fetching for part in row.parts if part.name in parts]
    error = together(*(float(part.error_ns) for part in rows)) / blocked_ns
    per_batch = blocked_ns / batches / 1e9
    how = (
        f"A batch waits {seconds(per_batch)} for {what}{_calls(facts, resource)}, with "
        f"{many(readers, 'reader')} at a time."
    )
    return ceiling(facts, resource, label, per_batch / readers, error, how)


def _calls(facts: Facts, resource: str) -> str:
    """How many read calls of fetching processes that were, where their counters are known. Reads
    of pipes are among them."""
    if resource != "storage":
        return ""
    try:
        calls = facts.storage.read_calls_per_sample * facts.full_batch
    except NotMeasuredError:
        return ""
    return f" in at most {significant(calls)} reads" if calls >= 1 else ""


def storage_bandwidth(facts: Facts) -> Ceiling | None:
    """Bytes that a batch brings from the device, over what the device gives.

    A profile shows that only where the device was saturated (then it is what it gave, over the
    time it was busy: the utilisation law, Denning and Buzen, 1978), or where it gave more for a
    moment: then at least that much. Otherwise it is not known, and there is no ceiling.
    """
    own = facts.profile.series.get("tree_read_bytes")
    batches = as_full_batches(facts, len(facts.profile.batches))
    if own is None or not facts.profile.batches or own.total() < _LEAST_BYTES_A_BATCH * batches:
        return None
    if _fetched_bytes(facts) < _LEAST_BYTES_A_BATCH * batches:
        return None
    length_s = (own.time_ns[-1] - own.time_ns[0]) / 1e9
    if length_s <= 0:
        return None
    per_batch, mean_rate = own.total() / batches, own.total() / length_s
    busy = facts.profile.series.get("machine_disk_busy_ns")
    used = min(1.0, busy.total() / 1e9 / length_s) if busy is not None else 0.0
    if used >= _SATURATED and _mean_readers(facts) >= _READERS:
        rate = mean_rate / used
        how = (
            f"A batch reads {bytes_text(per_batch)}; the device, busy {percent(used, 0)} of the "
            f"time, gave {bytes_text(rate)}/s."
        )
        return ceiling(facts, "storage_bandwidth", "storage bandwidth", per_batch / rate, 0.05, how)
    rate = _fastest(own)
    if rate < _FASTER * mean_rate:
        return None
    how = (
        f"A batch reads {bytes_text(per_batch)}; at best the device gave {bytes_text(rate)}/s, "
        "and may give more."
    )
    found = ceiling(
        facts, "storage_bandwidth", "disk bandwidth, at least", per_batch / rate,
        UNKNOWN_RELATIVE / 4, how,
    )  # fmt: skip
    return None if found is None else _at_least(found)


def _fetched_bytes(facts: Facts) -> float:
    """What fetches brought from a device; the rest of the tree's reads are imports and the like,
    as are those of each process's first fetch."""
    first: set[int] = set()
    blocks = 0
    for row in sorted(facts.fetches, key=lambda fetch: fetch.start_ns):
        if row.pid in first:
            blocks += row.read_blocks
        first.add(row.pid)
    return blocks * 512.0  # ru_inblock counts blocks of 512 bytes: getrusage(2)


def _at_least(found: Ceiling) -> Ceiling:
    return Ceiling(found.resource, found.label, found.samples_per_s, found.low, inf, found.how)


def _mean_readers(facts: Facts) -> float:
    """How many fetching threads were blocked by the disk at a time."""
    facts.need_states()
    return (facts.part_ns("disk") + facts.part_ns("page_fault")) / facts.loop.wall_ns


def _fastest(series: Series) -> float:
    """The highest growth a second over stretches of at least 0.4 s (shorter ones may hold a burst
    that had been read ahead)."""
    best, begin = 0.0, 0
    for (_, _), (now, value) in pairwise(zip(series.time_ns, series.values, strict=True)):
        while begin + 1 < len(series.time_ns) and now - series.time_ns[begin + 1] >= _WINDOW_NS:
            begin += 1
        length_ns = now - series.time_ns[begin]
        if length_ns >= _WINDOW_NS:
            best = max(best, (value - series.values[begin]) / length_ns * 1e9)
    return best
