"""Holds signals back while something must not be left half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# torch raises in its handler of SIGCHLD, wherever the process is, when a worker was killed.
_CHILD = getattr(signal, "SIGCHLD", None)
_HELD = (signal.SIGINT,) if _CHILD is None else (signal.SIGINT, _CHILD)


class Held:
    """Which signals came meanwhile. `forget()` drops an interrupt, for code that answers it itself.

    `error_told`: the code that was watched has ended with an exception already. What a handler of
    a child's end raises then is left out: it would take the place of that exception.
    """

    def __init__(self) -> None:
        self.came: set[int] = set()
        self.error_told = False

    @property
    def interrupted(self) -> bool:
        return signal.SIGINT in self.came

    def note(self, number: int, frame: FrameType | None) -> None:
        """The handler of the meantime."""
        self.came.add(number)

    def forget(self) -> None:
        self.came.discard(signal.SIGINT)


@contextmanager
def held_interrupts() -> Iterator[Held]:
    """Within the block SIGINT and SIGCHLD are only noted; afterwards they reach whoever handled
    them before.

    Starting and stopping a recording takes some tenths of a second and moves patches, a pipe and a
    folder; an exception in the middle of that would leave them, and lose the report. Does nothing
    outside of the main thread, where no signal arrives.
    """
    held = Held()
    if threading.current_thread() is not threading.main_thread():
        yield held
        return
    before = {number: signal.getsignal(number) for number in _HELD}
    # A handler that was not set from Python, or none, has nothing to raise.
    before = {number: handler for number, handler in before.items() if callable(handler)}
    for number in before:
        signal.signal(number, held.note)
    try:
        yield held
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if _CHILD in held.came:
            _raise_again(_CHILD, held)
    if held.interrupted:
        signal.raise_signal(signal.SIGINT)


def _raise_again(number: int, held: Held) -> None:
    try:
        signal.raise_signal(number)
    except Exception:
        if not held.error_told:
            raise
