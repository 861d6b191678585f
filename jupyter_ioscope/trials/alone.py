"""One comparison, search or bench at a time: two at once would measure each other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from jupyter_ioscope.errors import TrialError

_LOCK = threading.Lock()


@contextmanager
def alone() -> Iterator[None]:
    """Within the block no other one can begin.

    Raises:
        TrialError: one is running already.
    """
    if not _LOCK.acquire(blocking=False):
        raise TrialError("another comparison is running in this process: wait for it or cancel it")
    try:
        yield
    finally:
        _LOCK.release()
