"""Signals that end a command: what it made is removed first."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Ended(KeyboardInterrupt):
    """A signal asked the command to end: it goes the way that an interrupt goes."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number  # as shells count the exit of what a signal killed


def _numbers() -> tuple[signal.Signals, ...]:
    """What a job that is cancelled, and a terminal that is closed, send."""
    hang_up: signal.Signals | None = getattr(signal, "SIGHUP", None)  # not on Windows
    return (signal.SIGTERM,) if hang_up is None else (signal.SIGTERM, hang_up)


@contextlib.contextmanager
def tidied() -> Iterator[None]:
    """Raise `Ended` where a signal would end the process at once; a second one does so.

    Signals that somebody handles or ignores (nohup) stay theirs; all are as before afterwards.
    """
    ours: list[signal.Signals] = []
    here = os.getpid()

    def end(number: int, _frame: FrameType | None) -> None:
        for one in ours:
            signal.signal(one, signal.SIG_DFL)
        if os.getpid() != here:  # a child that was forked meanwhile: a pool's, or a loader's worker
            os.kill(os.getpid(), number)
            return
        raise Ended(number)

    if threading.current_thread() is threading.main_thread():
        ours += [one for one in _numbers() if signal.getsignal(one) is signal.SIG_DFL]
    for one in ours:
        signal.signal(one, end)
    try:
        yield
    finally:
        for one in ours:
            if signal.getsignal(one) is end:
                signal.signal(one, signal.SIG_DFL)
