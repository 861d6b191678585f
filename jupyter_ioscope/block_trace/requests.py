"""Requests out of events: issue joined to completion, and what that adds up to.

At the device is a request from its (last) issue to its completion, in the queue from its insertion
into the scheduler to that issue. A request is known by device, operation and first sector.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from jupyter_ioscope.block_trace.events import LOST, Event

_MOST_OPEN = 1 << 16  # requests under way: a device has some hundreds at the most
_MOST_ISSUERS = 4096
_STEPS_BITS = 7  # of a latency are kept: 0.8 % is the largest error
BUCKETS = 32  # of the histogram: the last one begins at 2**31 us, which is 36 minutes

Key = tuple[str, str, int]


class Latencies:
    """Latencies in whole microseconds, in bounded memory: exact below 128, then to 0.8 %."""

    __slots__ = ("_counts", "count", "total_us", "worst_us")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.count = self.total_us = self.worst_us = 0

    def add(self, value_us: int) -> None:
        shift = max(0, value_us.bit_length() - _STEPS_BITS)
        step = (value_us >> shift) << shift
        self._counts[step] = self._counts.get(step, 0) + 1
        self.count += 1
        self.total_us += value_us
        self.worst_us = max(self.worst_us, value_us)

    def percentile_us(self, fraction: float) -> int:
        """The smallest value that so large a fraction of the values does not exceed; 0 of none."""
        left = max(1, math.ceil(fraction * self.count))
        for step in sorted(self._counts):
            left -= self._counts[step]
            if left <= 0:
                return step
        return 0

    def histogram(self) -> list[int]:
        """Counts of the values in [2**n, 2**(n+1)) us, the first one those below 2 us."""
        found = [0] * BUCKETS
        for step, count in self._counts.items():
            found[min(BUCKETS - 1, max(0, step.bit_length() - 1))] += count
        while found and not found[-1]:
            found.pop()
        return found


class _Open:
    """A request that is under way. `issued_us` is -1 while it is in the queue."""

    __slots__ = ("issued_us", "issuer", "queued_us", "sectors")

    def __init__(self, issuer: _Issuer, queued_us: int) -> None:
        self.issuer, self.queued_us = issuer, queued_us
        self.issued_us, self.sectors = -1, 0


class _Issuer:
    """What one thread asked one device for, in one operation."""

    __slots__ = (
        "at_device",
        "busy_us",
        "bytes",
        "device_us",
        "name",
        "queue_us",
        "requests",
        "since_us",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.requests = self.bytes = self.device_us = self.queue_us = self.busy_us = 0
        self.at_device, self.since_us = 0, 0

    def issued(self, now_us: int) -> None:
        if not self.at_device:
            self.since_us = now_us
        self.at_device += 1

    def completed(self, now_us: int) -> None:
        self.at_device -= 1
        if not self.at_device:
            self.busy_us += max(0, now_us - self.since_us)


class _Total:
    """One device and one operation."""

    __slots__ = ("bytes", "device", "queue")

    def __init__(self) -> None:
        self.bytes = 0
        self.device, self.queue = Latencies(), Latencies()


class Requests:
    """All requests of a trace, while it goes on.

    `wanted` tells from the event with which a request begins whether it counts.
    """

    def __init__(self, wanted: Callable[[Event], bool] | None = None) -> None:
        self._wanted = wanted
        self._open: dict[Key, _Open] = {}
        self._totals: dict[tuple[str, str], _Total] = {}
        self._issuers: dict[tuple[str, str, int], _Issuer] = {}
        self.events = self.unmatched = 0

    def add(self, events: Iterable[Event]) -> None:
        """Take events in the order in which the kernel gives them."""
        for event in events:
            kind, operation = event[0], event[3]
            if kind == LOST:
                self._forget()
            elif operation:
                self.events += 1
                # Some kernels say sector 0 of a flush, others the largest number; or one of each.
                sector = 0 if operation == "flush" else event[4]
                key = (event[2], operation, sector)
                if kind == "complete":
                    self._completed(key, event)
                elif kind == "issue":
                    self._issued(key, event)
                else:
                    self._inserted(key, event)

    def _inserted(self, key: Key, event: Event) -> None:
        request = self._open.get(key)
        if request is None or request.issued_us < 0:
            # What was in the queue already has become a part of another request (a merge).
            self._open.pop(key, None)
            self._begun(key, event)
        else:  # the device was full and refused it: it stands in the queue again
            request.issuer.completed(event.time_us)
            request.issued_us = -1

    def _issued(self, key: Key, event: Event) -> None:
        request = self._open.get(key) or self._begun(key, event)
        if request is None:
            return
        if request.issued_us < 0:
            request.issuer.issued(event.time_us)
        # Issued once more, it was refused before: until now it waited.
        request.issued_us, request.sectors = event.time_us, event.sectors

    def _begun(self, key: Key, event: Event) -> _Open | None:
        """A new request; None where it does not count."""
        if self._wanted is not None and not self._wanted(event):
            return None
        if len(self._open) >= _MOST_OPEN:
            self._forget()
        request = self._open[key] = _Open(self._issuer(event), event.time_us)
        return request

    def _completed(self, key: Key, event: Event) -> None:
        request = self._open.pop(key, None)
        if request is None or request.issued_us < 0:
            self.unmatched += 1  # it was issued before the trace began
            return
        issuer, now_us = request.issuer, event.time_us
        total = self._totals.get(key[:2])
        if total is None:
            total = self._totals[key[:2]] = _Total()
        size = event.sectors * 512
        total.bytes += size
        issuer.bytes += size
        if event.sectors < request.sectors:  # a part; the remainder completes later
            request.sectors -= event.sectors
            self._open[key[0], key[1], key[2] + event.sectors] = request
            return
        took_us = max(0, now_us - request.issued_us)
        queued_us = max(0, request.issued_us - request.queued_us)
        total.device.add(took_us)
        total.queue.add(queued_us)
        issuer.requests += 1
        issuer.device_us += took_us
        issuer.queue_us += queued_us
        issuer.completed(now_us)

    def _issuer(self, event: Event) -> _Issuer:
        key = (event.device, event.operation, event.tid)
        found = self._issuers.get(key)
        if found is None:
            if len(self._issuers) >= _MOST_ISSUERS:
                key = (event.device, event.operation, 0)  # nobody in particular
                found = self._issuers.get(key)
            if found is None:
                found = self._issuers[key] = _Issuer(event.name if key[2] else "")
        return found

    def _forget(self) -> None:
        """Events are missing: what is under way can no longer be told."""
        for request in self._open.values():
            request.issuer.at_device = 0
        self.unmatched += len(self._open)
        self._open.clear()

    def summary(self) -> dict[str, Any]:
        """What JSON knows: a list a device and operation, and one a thread that asked."""
        return {
            "events": self.events,
            "unmatched": self.unmatched,
            "totals": [
                {
                    "device": device,
                    "operation": operation,
                    "requests": total.device.count,
                    "bytes": total.bytes,
                    **_latencies("device", total.device),
                    **_latencies("queue", total.queue),
                    "histogram": total.device.histogram(),
                }
                for (device, operation), total in sorted(self._totals.items())
            ],
            "issuers": [
                {
                    "device": device,
                    "operation": operation,
                    "tid": tid,
                    "name": one.name,
                    "requests": one.requests,
                    "bytes": one.bytes,
                    "device_us": one.device_us,
                    "queue_us": one.queue_us,
                    "busy_us": one.busy_us,
                }
                for (device, operation, tid), one in sorted(self._issuers.items())
                if one.requests
            ],
        }


def _latencies(name: str, found: Latencies) -> dict[str, float]:
    return {
        f"{name}_mean_us": found.total_us / found.count if found.count else 0.0,
        f"{name}_p50_us": found.percentile_us(0.5),
        f"{name}_p99_us": found.percentile_us(0.99),
        f"{name}_p999_us": found.percentile_us(0.999),
        f"{name}_worst_us": found.worst_us,
    }
