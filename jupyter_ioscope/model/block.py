"""Requests of block devices while a profile ran, from the kernel's trace.

At the device is a request from its issue to its completion, in the queue from its insertion into
the scheduler until then (0 where the device has none). All `*_s` are seconds, as exact as the
kernel prints its times: to 1 us; percentiles above 128 us to 0.8 %.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

OPERATIONS = ("read", "write", "discard", "flush")
# Who asked: the profiled process, one of its workers, another process below it, anybody else.
ROLES = ("consumer", "worker", "child", "other")


class BlockRequests(NamedTuple):
    """Requests of one device and one operation, whoever asked.

    `device` is its name ("vda", "8:0" where it has none). `histogram` counts the times at the
    device: entry n those from 2**n to 2**(n+1) us, entry 0 all below 2 us.
    """

    device: str
    operation: str
    requests: int
    bytes: int
    mean_s: float
    p50_s: float
    p99_s: float
    p999_s: float
    worst_s: float
    queue_mean_s: float
    queue_p99_s: float
    queue_worst_s: float
    histogram: tuple[int, ...]


def requests_of(row: Mapping[str, Any], device: str) -> BlockRequests:
    """One of the totals of `block_trace.requests.Requests.summary`."""
    times = {
        name: row[f"{where}_{what}_us"] / 1e6
        for name, where, what in (
            ("mean_s", "device", "mean"),
            ("p50_s", "device", "p50"),
            ("p99_s", "device", "p99"),
            ("p999_s", "device", "p999"),
            ("worst_s", "device", "worst"),
            ("queue_mean_s", "queue", "mean"),
            ("queue_p99_s", "queue", "p99"),
            ("queue_worst_s", "queue", "worst"),
        )
    }
    return BlockRequests(
        device=device,
        operation=row["operation"],
        requests=row["requests"],
        bytes=row["bytes"],
        histogram=tuple(row["histogram"]),
        **times,
    )


class BlockIssuer(NamedTuple):
    """What one process, or programs of one name, asked a device for.

    `device_s` and `queue_s` add up the requests; `busy_s` is the time during which at least one of
    a thread's requests was at the device, added up over its threads. `worker` is -1 for all but
    workers, `name` that of the program for "child" and "other" ("" for those without one).
    """

    device: str
    operation: str
    role: str
    worker: int
    name: str
    requests: int
    bytes: int
    device_s: float
    queue_s: float
    busy_s: float


@dataclass(frozen=True)
class BlockTrace:
    """All requests. `lost` counts events for which the kernel's buffer had no place; `unmatched`
    requests of which only one end was seen. Without `knows_issuers`, nobody knows whose they were:
    the trace counts processes as the machine does, not as this container."""

    seconds: float
    events: int
    lost: int
    unmatched: int
    knows_issuers: bool
    requests: tuple[BlockRequests, ...] = ()
    issuers: tuple[BlockIssuer, ...] = ()

    def of(self, device: str, operation: str) -> BlockRequests | None:
        """The requests of a device; None where there were none."""
        wanted = (device, operation)
        return next((row for row in self.requests if row[:2] == wanted), None)


def check_block(trace: BlockTrace) -> list[str]:
    """Sentences about what cannot be true in this trace; empty when all holds."""
    for row in trace.requests:
        if row.operation not in OPERATIONS:
            return [f"requests of {row.device} have the unknown operation {row.operation!r}"]
        if sum(row.histogram) != row.requests:
            return [f"the histogram of {row.device} does not hold all of its requests"]
    for issuer in trace.issuers:
        if issuer.role not in ROLES:
            return [f"requests of {issuer.device} have the unknown role {issuer.role!r}"]
    return []
