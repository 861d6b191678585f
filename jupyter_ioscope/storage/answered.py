"""Who answered a read: the device, the page cache, or memory; and how that is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jupyter_ioscope.model.storage import FileSystem, Timing
from jupyter_ioscope.storage.page_cache import PROVEN_FRACTION
from jupyter_ioscope.units import percent

_MOST = 0.9  # of the bytes read; requests at the end of a file may be short


def by(row: Mapping[str, Any], file_system: FileSystem) -> Timing:
    """The timing of a measured row, with who answered it."""
    timing = timing_of(row["timing"])
    answered, how = _who(timing, row, file_system)
    return timing._replace(answered_by=answered, how=how)


def timing_of(values: Mapping[str, Any]) -> Timing:
    """A timing as it was before it was JSON, where a range is a list."""
    kept: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }
    return Timing(**kept)


def _who(timing: Timing, row: Mapping[str, Any], file_system: FileSystem) -> tuple[str, str]:
    if file_system.family == "memory":
        return "memory", f"{file_system.name} keeps its files in memory"
    moved = timing.requests * timing.request_bytes
    share = row["from_device"] / moved if row["from_device"] >= 0 and moved else -1.0
    if row["direct"]:
        return _direct(share, file_system)
    resident = float(row["resident"])
    if resident < 0:
        return "unproven", "no O_DIRECT here, and the kernel does not say what its page cache holds"
    told = f"{percent(resident)} of the file in the page cache, says {row['method']}"
    if resident <= PROVEN_FRACTION:
        return "device", f"evicted before the read: {told}"
    return "page_cache", f"the eviction did not take: {told}"


def _direct(share: float, file_system: FileSystem) -> tuple[str, str]:
    if share >= _MOST:
        return "device", "O_DIRECT, and the kernel counted the bytes as fetched from storage"
    if file_system.family in ("network", "host", "fuse", "object store"):
        return "device", (
            f"O_DIRECT: past this machine's page cache; {file_system.name} may have answered from "
            "a cache of its own"
        )
    if share < 0:
        return "unproven", "O_DIRECT was accepted, but the kernel does not count what it fetched"
    return "unproven", (
        f"O_DIRECT was accepted, but the kernel counted only {percent(share)} of the bytes as "
        f"fetched from storage: {file_system.name} may have a cache of its own, or the file holes"
    )
