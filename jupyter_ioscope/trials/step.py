"""What stands in for the user's own time with a batch."""

from __future__ import annotations

import time
from typing import NamedTuple

from jupyter_ioscope.units import seconds


class Step(NamedTuple):
    """So much CPU time of one thread, and so much time off the core (a GPU that works, for
    instance), after every batch. Trials without one draw batches as fast as they come."""

    cpu_s: float = 0.0
    off_s: float = 0.0

    def run(self) -> None:
        until_ns = time.thread_time_ns() + int(self.cpu_s * 1e9)
        while time.thread_time_ns() < until_ns:
            pass
        if self.off_s > 0:
            time.sleep(self.off_s)

    def text(self) -> str:
        """What it is, as a note under a result."""
        whole = seconds(self.cpu_s + self.off_s)
        return (
            f"Every batch was followed by a stand-in for your step: {whole}, of which "
            f"{seconds(self.cpu_s)} on a core."
        )


NO_STEP = Step()
