"""Requests of block devices as a table: how many, how late, and who asked."""

from __future__ import annotations

from jupyter_ioscope.model.block import BlockIssuer, BlockRequests, BlockTrace
from jupyter_ioscope.units import bytes_text, percent, seconds
from jupyter_ioscope.views.shapes import IBlock
from jupyter_ioscope.views.words import clean

HEAD = ("Block devices", "requests", "bytes", "median", "99 %", "99.9 %", "in queue", "asked by")
_MOST = 8
_NAMED, _LEAST = 2, 0.01
_OPERATIONS = {"read": "reads", "write": "writes", "discard": "discards", "flush": "flushes"}


def block_rows(trace: BlockTrace | None) -> list[IBlock]:
    """One row a device and operation, what took longest in all first."""
    if trace is None:
        return []
    ordered = sorted(trace.requests, key=lambda row: -row.mean_s * row.requests)
    return [_row(row, trace) for row in ordered[:_MOST]]


def block_cells(row: IBlock) -> tuple[str, ...]:
    """The cells below `HEAD`."""
    times = (row["median"], row["p99"], row["p999"], row["queue"])
    return (row["name"], row["requests"], row["bytes"], *times, row["who"])


def _row(row: BlockRequests, trace: BlockTrace) -> IBlock:
    return IBlock(
        name=clean(f"{row.device} {_OPERATIONS.get(row.operation, row.operation)}", 60),
        requests=f"{row.requests:,}",
        bytes=bytes_text(row.bytes),
        median=seconds(row.p50_s),
        p99=seconds(row.p99_s),
        p999=seconds(row.p999_s),
        queue=seconds(row.queue_mean_s),
        who=clean(_who(row, trace), 120),
        title=clean(_histogram(row), 300),
    )


def _who(row: BlockRequests, trace: BlockTrace) -> str:
    """`workers 97 %, kworker 2 %`, by requests; of programs the first ones by name."""
    counts: dict[str, int] = {}
    for issuer in trace.issuers:
        if issuer[:2] == row[:2]:
            name = _name(issuer)
            counts[name] = counts.get(name, 0) + issuer.requests
    whole = sum(counts.values())
    told = sorted(counts.items(), key=lambda item: -item[1])
    named = [
        f"{name} {percent(count / whole)}"
        for name, count in told[:_NAMED]
        if count >= _LEAST * whole
    ]
    return ", ".join(named)


def _name(issuer: BlockIssuer) -> str:
    known = {"worker": "workers", "consumer": "loop"}
    return known.get(issuer.role) or issuer.name or "others"


def _histogram(row: BlockRequests) -> str:
    """`at the device: 783 from 64 µs, 219 from 128 µs, worst 310 µs`."""
    parts = [
        f"{count:,} from {seconds(2**place * 1e-6)}"
        if place
        else f"{count:,} below {seconds(2e-6)}"
        for place, count in enumerate(row.histogram)
        if count
    ]
    return f"at the device: {', '.join(parts)}; worst {seconds(row.worst_s)}"
