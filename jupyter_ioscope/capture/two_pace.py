"""py-spy at two paces: often while a profile is young, rarely once it has run for a while.

Reading the stacks of a notebook kernel (some 15 threads of its own) and two workers took 3.7 % of a
core and another 0.32 % for every reading a second. A short profile needs many readings, because
what it says rests on few seconds; a long one has enough of them at a quarter of the pace. The
readings of the slow pace stand for more time each, so they count for more.
"""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from jupyter_ioscope.capture.pyspy import PySpy

QUICK_S = 5.0
SLOWER = 4  # the slow pace is a quarter of the quick one, and its samples count four times


class StackFile(NamedTuple):
    """A raw file of py-spy. Each of its samples counts `weight` times."""

    path: str
    weight: int


class TwoPace:
    """One or two py-spy processes. Raises OSError where the first cannot be started."""

    def __init__(self, executable: str, pid: int, folder: str, rate_hz: float) -> None:
        self._executable, self._watched, self._folder = executable, pid, folder
        self._slow_hz = int(rate_hz // SLOWER)
        quick_hz = self._slow_hz * SLOWER or rate_hz
        self._quick = self._start(quick_hz)
        self._slow: PySpy | None = None
        self._slower_at_s = time.monotonic() + QUICK_S
        self._asked = False

    def _start(self, rate_hz: float) -> PySpy:
        path = os.path.join(self._folder, f"py-spy-{time.monotonic_ns()}.raw")
        return PySpy(self._executable, self._watched, path, rate_hz)

    def settled(self) -> bool:
        return self._quick.settled()

    def running(self) -> bool:
        return self._quick.running() or (self._slow is not None and self._slow.running())

    def tick(self) -> None:
        """Change the pace when it is time. The quick one goes on until the slow one has attached,
        and for ever where that fails."""
        if self._asked:
            self._quick.running()  # reaps it once it has ended
            return
        if not self._slow_hz or time.monotonic() < self._slower_at_s:
            return
        if self._slow is None:
            try:
                self._slow = self._start(self._slow_hz)
            except OSError:
                self._slow_hz = 0
        elif self._slow.settled():
            if self._slow.running():
                self._quick.ask_to_stop()
                self._asked = True
            else:
                self._slow.stop()
                self._slow, self._slow_hz = None, 0

    def stop(self) -> str:
        """End both; "" if there is a file to read, else the reason why not."""
        for spy in (self._quick, self._slow):
            if spy is not None:
                spy.ask_to_stop()
        reason = self._quick.stop()
        self._files = [] if reason else [StackFile(self._quick.path, 1)]
        # Beside a quick one that went on to the end the slow one would count everything twice.
        if self._slow is not None and not self._slow.stop() and (self._asked or reason):
            self._files.append(StackFile(self._slow.path, SLOWER))
        return "" if self._files else reason

    @property
    def files(self) -> list[StackFile]:
        """After `stop`: what to read."""
        return self._files
