"""What the live panel shows of one reading: a row a quantity, each with its text.

The page draws `value` over time and shows `text`; it computes neither (labextension/src/live.ts).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from jupyter_ioscope.capture.live_gauges import LiveReading
from jupyter_ioscope.units import bytes_text, percent, rate

Row = dict[str, Any]  # `IRow` of labextension/src/live.ts

_UNRECORDED = "run the cell under %%ioscope"
_SOON = "not measured yet"


class _Quantity(NamedTuple):
    """One row. `names` are series that hold it, best first; `probe` starts the text of its gap."""

    key: str
    label: str
    names: tuple[str, ...]
    probe: str


_CPU = _Quantity("cpu", "CPU", ("tree_cpu_ns",), "CPU")
_IO_WAIT = _Quantity("io_wait", "I/O wait", ("psi_io_some_us", "machine_iowait_ns"), "io pressure")
_DISK = _Quantity("disk", "Disk", ("tree_read_bytes", "machine_disk_read_bytes"), "bytes")
_MEMORY = _Quantity("memory", "Memory", ("tree_pss_bytes", "tree_rss_bytes"), "memory")


def live_rows(reading: LiveReading, progress: tuple[int, float, float] | None) -> list[Row]:
    """All rows, in the order in which they are shown, those without a value with the reason.

    Args:
        progress: (batches, batches/s, fraction of time waiting) of the profile that is being
            recorded, None when none is.
    """
    return [
        *_loop(progress),
        _row(reading, _CPU, lambda cores: f"{cores:.1f} of {reading.cores} cores"),
        _row(reading, _IO_WAIT, lambda share: percent(min(1.0, share)), most=1.0),
        _row(reading, _DISK, lambda per_s: f"{bytes_text(per_s)}/s read"),
        *_gpus(reading),
        _row(reading, _MEMORY, bytes_text),
    ]


def _loop(progress: tuple[int, float, float] | None) -> Iterator[Row]:
    """Speed of the loop and what part of its time it waits, while it is being profiled."""
    if progress is None:
        yield _missing("throughput", "Throughput", _UNRECORDED)
        yield _missing("wait", "Wait for data", _UNRECORDED)
        return
    _, per_s, waiting = progress
    yield _shown("throughput", "Throughput", per_s, rate(per_s, "batches"))
    yield _shown("wait", "Wait for data", waiting, percent(waiting, 0), most=1.0)


def _gpus(reading: LiveReading) -> Iterator[Row]:
    values: Mapping[str, float] = reading.values
    busy = sorted(name for name in values if name.startswith("gpu") and name.endswith("_fraction"))
    for name in busy:
        number = name[3 : name.index("_")]
        label = "GPU" if len(busy) == 1 else f"GPU {number}"
        yield _shown(f"gpu{number}", label, values[name], percent(values[name], 0), most=1.0)
    if not busy:
        yield _missing("gpu", "GPU", _reason(reading, "GPU"))


def _row(
    reading: LiveReading,
    quantity: _Quantity,
    text: Callable[[float], str],
    most: float | None = None,
) -> Row:
    for name in quantity.names:
        if name in reading.values:
            value = reading.values[name]
            return _shown(quantity.key, quantity.label, value, text(value), most)
    return _missing(quantity.key, quantity.label, _reason(reading, quantity.probe))


def _reason(reading: LiveReading, what: str) -> str:
    for gap in reading.gaps:
        if gap.what.lower().startswith(what.lower()):
            return gap.reason
    return _SOON


def _shown(key: str, label: str, value: float, text: str, most: float | None = None) -> Row:
    """`most` is the top of the row's scale; without one the page takes the largest value seen."""
    return {"key": key, "label": label, "value": value, "text": text, "most": most, "why": ""}


def _missing(key: str, label: str, why: str) -> Row:
    return {"key": key, "label": label, "value": None, "text": "–", "most": None, "why": why}
