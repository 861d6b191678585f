"""Holds SIGINT back while something must not be left half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Held:
    """Whether an interrupt came meanwhile. `forget()` drops it, for code that answers it itself."""

    def __init__(self) -> None:
        self.interrupted = False

    def note(self, number: int, frame: FrameType | None) -> None:
        """The handler of the meantime."""
        self.interrupted = True

    def forget(self) -> None:
        self.interrupted = False


@contextmanager
def held_interrupts() -> Iterator[Held]:
    """Within the block an interrupt is only noted; afterwards it reaches whoever handled it before.

    Starting and stopping a recording takes some tenths of a second and moves patches, a pipe and a
    folder; an interrupt in the middle of that would leave them, and lose the report. Does nothing
    outside of the main thread, where no signal arrives.
    """
    held = Held()
    if threading.current_thread() is not threading.main_thread():
        yield held
        return
    before = signal.getsignal(signal.SIGINT)
    if before is None or before is signal.SIG_IGN:
        yield held  # not set from Python, or ignored anyway
        return
    signal.signal(signal.SIGINT, held.note)
    try:
        yield held
    finally:
        signal.signal(signal.SIGINT, before)
    if held.interrupted:
        signal.raise_signal(signal.SIGINT)
