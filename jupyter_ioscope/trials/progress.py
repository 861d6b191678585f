"""What a running comparison says about itself, at most four times a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jupyter_ioscope.trials.statistics import Interval

_EVERY_S = 0.25


@dataclass(frozen=True)
class Progress:
    """`fraction` is 0-1 of the budget. `ratio` is NaN before the first pair is complete."""

    state: str  # "preparing", "checking", "running", "done", "cancelled"
    text: str
    fraction: float
    pairs: int = 0
    ratio: float = float("nan")
    ratio_low: float = 0.0
    ratio_high: float = float("inf")


class Reporter:
    """Calls `on_progress` from the calling thread; steps in between are dropped, not the last."""

    def __init__(self, on_progress: Callable[[Progress], None] | None, budget_s: float) -> None:
        self._call, self._budget_s = on_progress, budget_s
        self.started = time.monotonic()
        self._last = 0.0
        self._state, self._text = "preparing", ""
        self._pairs, self._found = 0, Interval(float("nan"), 0.0, float("inf"))

    def age_s(self) -> float:
        return time.monotonic() - self.started

    def expect(self, total_s: float) -> None:
        """It takes so many seconds in all, as far as is known now."""
        self._budget_s = max(1e-3, total_s)

    def stage(self, state: str, text: str) -> None:
        self._state, self._text = state, text
        self.tick({})

    def pairs(self, number: int, found: Interval) -> None:
        self._pairs, self._found = number, found

    def tick(self, report: dict[str, Any]) -> None:
        """A few words on the newest report of the running job, when it is time for some."""
        if self._call is None or time.monotonic() - self._last < _EVERY_S:
            return
        samples = report.get("samples", 0)
        self._send(self._text + (f", {samples:,} samples" if samples else ""))

    def last(self, state: str, text: str) -> None:
        """The closing word: waits its turn, so that the rate holds."""
        if self._call is None:
            return
        time.sleep(max(0.0, _EVERY_S - (time.monotonic() - self._last)))
        self._state = state
        self._send(text, 1.0 if state == "done" else None)

    def _send(self, text: str, fraction: float | None = None) -> None:
        assert self._call is not None
        self._last = time.monotonic()
        share = min(0.99, self.age_s() / self._budget_s) if fraction is None else fraction
        found = self._found
        self._call(
            Progress(self._state, text, share, self._pairs, found.ratio, found.low, found.high)
        )
