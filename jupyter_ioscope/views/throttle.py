"""At most so many messages a second, the newest of each kind, and the last one always."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

log = logging.getLogger("ioscope")

PER_SECOND = 4.0  # more often than that a page only redraws, and a slow link falls behind


class Throttle:
    """Passes states to `send` from whatever thread brings them; what comes too early waits.

    States that wait are merged key by key, the newer value wins. `send` is called by one thread at
    a time; what it raises is logged.
    """

    def __init__(
        self, send: Callable[[dict[str, Any]], None], per_second: float = PER_SECOND
    ) -> None:
        self._send = send
        self._period_s = 1.0 / per_second
        self._pending: dict[str, Any] = {}
        self._next_s = 0.0  # time.monotonic() from which on the next message may go
        self._timer: threading.Timer | None = None
        self._closed = False
        self._state = threading.Lock()
        self._sending = threading.Lock()  # keeps messages in order

    def put(self, **state: Any) -> None:
        """Send now, or as soon as the rate allows."""
        with self._state:
            if self._closed:
                return
            self._pending.update(state)
            if self._timer is not None:
                return
            wait_s = self._next_s - time.monotonic()
            if wait_s > 0:
                self._timer = threading.Timer(wait_s, self._flush)
                self._timer.daemon = True
                self._timer.name = "ioscope-report"
                self._timer.start()
                return
        self._flush()

    def close(self) -> None:
        """Send what still waits, at once; later states are dropped. No thread is left."""
        with self._state:
            if self._closed:
                return
            self._closed = True
            timer = self._timer
        if timer is not None:
            timer.cancel()
        self._flush()
        if timer is not None and timer is not threading.current_thread():
            timer.join(1.0)

    def _flush(self) -> None:
        with self._sending:
            with self._state:
                state, self._pending, self._timer = self._pending, {}, None
                self._next_s = time.monotonic() + self._period_s
            if state:
                try:
                    self._send(state)
                except Exception:
                    log.warning("ioscope: a message to the page was lost", exc_info=True)
