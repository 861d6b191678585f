"""What the trace of block devices adds to waits for storage: device, queue, or somebody else."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.model.block import BlockIssuer, BlockTrace
from jupyter_ioscope.units import percent, seconds

_WAITS = ("disk", "page_fault")
_MOST = 0.5  # from where on a part is told as what it mainly was
_FEW_LOST = 0.02  # events without which sums still hold
_NAMED = 2
_KERNEL = "kworker"
_UNDER_WAY = 0.5  # requests of others on average, below which the device was free most of the time


def block_lines(facts: Facts) -> tuple[str, ...]:
    """Evidence from the trace, most telling first; empty without a trace, or where the fetching
    threads asked no device."""
    trace = facts.profile.block
    if trace is None:
        return ()
    own = _own(facts, trace)
    lines = (_where_line(facts, trace, own), _latency_line(trace, own), others_line(facts))
    return tuple(line for line in lines if line)


def others_line(facts: Facts) -> str:
    """`Of the time that requests were at vda or in its queue, 62 % belongs to other programs ...`;
    empty where they are a small part, or few."""
    trace = facts.profile.block
    device = _device(_own(facts, trace)) if trace is not None else ""
    if trace is None or not device or not _crowded(trace, device):
        return ""
    taken, whole_s = _others(trace, device)
    first = sorted((name for name in taken if name), key=lambda name: -taken[name])[:_NAMED]
    named = ", ".join(f"{name} {percent(taken[name] / whole_s)}" for name in first)
    share = percent(sum(taken.values()) / whole_s)
    line = (
        f"Of the time that requests were at {device} or in its queue, {share} belongs to other "
        "programs"
    )
    return f"{line} ({named})." if named else f"{line}."


def _others(trace: BlockTrace, device: str) -> tuple[dict[str, float], float]:
    """(program -> seconds of its requests at a device and in its queue, everybody's seconds)."""
    rows = [row for row in trace.issuers if row.device == device]
    taken: dict[str, float] = {}
    for row in rows:
        if row.role == "other":
            taken[row.name] = taken.get(row.name, 0.0) + row.device_s + row.queue_s
    return taken, sum(row.device_s + row.queue_s for row in rows)


def _crowded(trace: BlockTrace, device: str) -> bool:
    """Whether other programs asked for most, and for something all the time: the seconds of
    requests over those of the clock are how many were under way on average (Little's law)."""
    taken, whole_s = _others(trace, device)
    theirs_s = sum(taken.values())
    return theirs_s >= _MOST * whole_s and theirs_s >= _UNDER_WAY * trace.seconds


def _own(facts: Facts, trace: BlockTrace) -> list[BlockIssuer]:
    """What the threads that fetch asked for."""
    role = "consumer" if facts.alone else "worker"
    return [row for row in trace.issuers if row.role == role]


def _device(own: list[BlockIssuer]) -> str:
    """The device at which the fetching threads' requests were longest; "" without any."""
    spent: dict[str, float] = {}
    for row in own:
        spent[row.device] = spent.get(row.device, 0.0) + row.device_s + row.queue_s
    return max(spent, key=lambda device: spent[device], default="")


def _latency_line(trace: BlockTrace, own: list[BlockIssuer]) -> str:
    """`vda answered half of the reads within 99 µs, 99 % within 206 µs; ...`"""
    found = trace.of(_device(own), "read")
    if found is None:
        return ""
    return (
        f"{found.device} answered half of the reads within {seconds(found.p50_s)}, 99 % within "
        f"{seconds(found.p99_s)}; before, they were in its queue for "
        f"{seconds(found.queue_mean_s)} on average."
    )


def held_back(facts: Facts) -> str:
    """Advice where requests were held back before they reached the device; else empty."""
    trace = facts.profile.block
    if trace is None or _where(facts, trace, _own(facts, trace)) != "before":
        return ""
    return (
        " First rule out a limit on this container's I/O (%ioscope limits): more requests at once "
        "do not raise it."
    )


_ENDINGS = {
    "before": ": most of it passed before a request was made, in the file system, for a place in "
    "the queue, or held back by a limit (io.max of the control group).",
    "queue": ", and for longer in its queue: more is asked of it at once than it takes.",
    "others": ", which others kept busy.",
    "device": ": the device itself is what they waited for.",
    "unclear": ".",
}


def _where_line(facts: Facts, trace: BlockTrace, own: list[BlockIssuer]) -> str:
    """How much of the waiting the device accounts for, and what else it was."""
    where = _where(facts, trace, own)
    if not where:
        return ""
    waited_s = _waited_s(facts)
    return (
        f"Of {seconds(waited_s)} that fetching threads stood waiting for storage, their requests "
        f"were at the device for {seconds(min(waited_s, sum(row.busy_s for row in own)))}"
        f"{_ENDINGS[where]}"
    )


def _waited_s(facts: Facts) -> float:
    return sum(facts.part_ns(part) for part in _WAITS) / 1e9


def _where(facts: Facts, trace: BlockTrace, own: list[BlockIssuer]) -> str:
    """Where most of the waiting was spent, a key of `_ENDINGS`; empty where sums say nothing."""
    waited_s = _waited_s(facts)
    if not own or waited_s <= 0 or trace.lost > _FEW_LOST * trace.events:
        return ""
    device = _device(own)
    busy_s, queue_s = sum(row.busy_s for row in own), sum(row.queue_s for row in own)
    taken, _ = _others(trace, device)
    if busy_s + queue_s < _MOST * waited_s:
        # What encryption or a thread pool of the kernel asks for on behalf of others is its own.
        known_s = busy_s + queue_s + taken.get(_KERNEL, 0.0)
        return "before" if known_s < _MOST * waited_s else "unclear"
    if queue_s > sum(row.device_s for row in own):
        return "queue"
    return "others" if _crowded(trace, device) else "device"
