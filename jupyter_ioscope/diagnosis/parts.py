"""Adds up parts of wall time; whatever is missing gets the name "rest"."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.spread import together
from jupyter_ioscope.model.diagnosis import PARTS, Part, ThreadWaits


class Parts:
    """Growing sums of named parts, in ns, with standard errors."""

    def __init__(self) -> None:
        self._times: dict[str, int] = {}
        self._errors: dict[str, float] = {}

    def add(self, name: str, time_ns: int, error_ns: float = 0) -> None:
        if name not in PARTS:
            raise ValueError(f"unknown part of wall time: {name}")
        self._times[name] = self._times.get(name, 0) + max(0, time_ns)
        before = self._errors.get(name, 0.0)
        self._errors[name] = together(before, error_ns) if error_ns else before

    def take(self, name: str, most_ns: int) -> int:
        """Remove up to `most_ns` from a part; returns how much it was."""
        taken = min(self._times.get(name, 0), max(0, most_ns))
        if taken:
            self._times[name] -= taken
        return taken

    def sum_ns(self) -> int:
        return sum(self._times.values())

    def scale(self, factor: float) -> None:
        self._times = {name: int(time_ns * factor) for name, time_ns in self._times.items()}
        self._errors = {name: error * factor for name, error in self._errors.items()}

    def ordered(self) -> tuple[Part, ...]:
        return tuple(
            Part(name, self._times[name], int(self._errors[name]))
            for name in PARTS
            if self._times.get(name, 0) > 0
        )


def thread_waits(who: str, worker: int, pid: int, wall_ns: int, parts: Parts) -> ThreadWaits:
    """The finished row. Parts that exceed the wall time (clocks of two processes, rounding) are
    shrunk to it; a shortfall becomes "rest"."""
    if parts.sum_ns() > wall_ns:
        parts.scale(wall_ns / parts.sum_ns())
    parts.add("rest", wall_ns - parts.sum_ns())
    return ThreadWaits(who, worker, pid, wall_ns, parts.ordered())
