"""Traces of block devices as values, for tests of rules and views."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jupyter_ioscope.model.block import BlockIssuer, BlockRequests, BlockTrace


def requests(device: str = "vda", operation: str = "read", count: int = 1000) -> BlockRequests:
    """`count` requests of 64 KiB: half within 100 us, 99 % within 400 us."""
    return BlockRequests(
        device=device,
        operation=operation,
        requests=count,
        bytes=count * 65536,
        mean_s=120e-6,
        p50_s=100e-6,
        p99_s=400e-6,
        p999_s=900e-6,
        worst_s=2e-3,
        queue_mean_s=3e-6,
        queue_p99_s=8e-6,
        queue_worst_s=40e-6,
        histogram=(0, 0, 0, 0, 0, 0, count),
    )


def issuer(role: str = "worker", worker: int = 0, **changes: Any) -> BlockIssuer:
    usual: dict[str, Any] = {
        "device": "vda",
        "operation": "read",
        "name": "",
        "requests": 1000,
        "bytes": 65_536_000,
        "device_s": 0.5,
        "queue_s": 0.0,
        "busy_s": 0.5,
    }
    return BlockIssuer(role=role, worker=worker, **{**usual, **changes})


def trace(*issuers: BlockIssuer, rows: Iterable[BlockRequests] = (), **changes: Any) -> BlockTrace:
    usual: dict[str, Any] = {"seconds": 2.0, "events": 3000, "lost": 0, "unmatched": 0}
    return BlockTrace(
        knows_issuers=changes.pop("knows_issuers", True),
        requests=tuple(rows) or (requests(),),
        issuers=issuers,
        **{**usual, **changes},
    )
