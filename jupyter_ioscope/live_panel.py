"""The kernel's end of the live panel: readings while a page looks on, nothing else.

A page opens a comm with target `TARGET`; while one is open, a thread reads about once a second and
sends `{"rows": [...]}` (views/live_rows.py). A page says `{"cmd": "here"}` every `SIGN_OF_LIFE_S`;
one that vanished without closing its comm is dropped. No page, no thread, no open file.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from jupyter_ioscope.capture.live_gauges import LiveGauges
from jupyter_ioscope.capture.profiler import progress_now
from jupyter_ioscope.views.comms import Comm, kernel_comm_manager
from jupyter_ioscope.views.live_rows import live_rows

log = logging.getLogger("ioscope")

TARGET = "ioscope.live"
SIGN_OF_LIFE_S = 20.0  # labextension/src/live_link.ts sends them
_SILENT_S = 3 * SIGN_OF_LIFE_S + 5
_PERIOD_S, _LONGEST_PERIOD_S = 1.0, 10.0
# The thread's own share of a core. Sending a message costs the kernel's output thread about as
# much again, and both together must stay below half a percent.
_SHARE = 0.002


class LivePanel:
    """Answers the pages of one kernel. Thread-safe.

    Args:
        shell: its events tell whether a cell runs; messages of a page may wait until it has ended.
        gauges: makes what is read; another one in tests.
    """

    def __init__(self, shell: Any, gauges: Callable[[], LiveGauges] = LiveGauges) -> None:
        self._shell = shell
        self._make_gauges = gauges
        self._pages: dict[int, tuple[Comm, float]] = {}  # id -> (comm, last sign of life)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._in_cell = False

    @classmethod
    def of_kernel(cls, shell: Any) -> LivePanel | None:
        """One that answers the pages of the kernel that runs here; None outside a kernel."""
        manager = kernel_comm_manager()
        if manager is None:
            return None
        made = cls(shell)
        manager.register_target(TARGET, made.opened)
        return made

    def leave(self) -> None:
        """Answer no more pages, and end what runs."""
        manager = kernel_comm_manager()
        if manager is not None:
            _quietly(lambda: manager.unregister_target(TARGET, self.opened))
        self.close()

    def opened(self, comm: Comm, _message: dict[str, Any]) -> None:
        """A page opened a comm; called by the kernel, on whatever thread it reads messages."""
        comm.on_msg(lambda _message: self._seen(comm))
        comm.on_close(lambda _message: self._left(comm))
        with self._lock:
            self._pages[id(comm)] = (comm, time.monotonic())
            if self._thread is None:
                self._start()

    def close(self) -> None:
        """Send nothing more. No thread and no descriptor is left."""
        thread = self._thread
        self._dismiss()
        if thread is not None:
            thread.join(2)

    def _dismiss(self) -> None:
        """Close every page's comm; the thread then ends."""
        with self._lock:
            pages, self._pages = list(self._pages.values()), {}
            self._stop.set()
        for comm, _ in pages:
            _quietly(comm.close)

    def _start(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(self._stop,), name="ioscope-live-panel", daemon=True
        )
        events = self._shell.events
        events.register("pre_run_cell", self._cell_begins)
        events.register("post_run_cell", self._cell_ended)
        self._thread.start()

    def _run(self, stop: threading.Event) -> None:
        gauges = None
        pace = _Pace()
        try:
            gauges = self._make_gauges()
            gauges.read()  # opens and imports what the next ones use; nothing grows before it
            while not stop.wait(pace.wait_s()) and self._drop_silent():
                with pace:
                    self._send({"rows": live_rows(gauges.read(), progress_now())})
        except Exception:
            log.warning("ioscope: the live panel ended", exc_info=True)
            self._dismiss()
        finally:
            if gauges is not None:
                gauges.close()
            self._ended(stop)

    def _ended(self, stop: threading.Event) -> None:
        with self._lock:
            if self._stop is stop:
                self._thread = None
                self._unregister()
                if self._pages:
                    self._start()  # one came while this thread was ending

    def _unregister(self) -> None:
        events = self._shell.events
        _quietly(lambda: events.unregister("pre_run_cell", self._cell_begins))
        _quietly(lambda: events.unregister("post_run_cell", self._cell_ended))

    def _send(self, state: dict[str, Any]) -> None:
        with self._lock:
            comms = [comm for comm, _ in self._pages.values()]
        for comm in comms:
            try:
                comm.send(state)
            except Exception:
                self._left(comm)

    def _drop_silent(self) -> bool:
        """Forget pages that gave no sign of life; whether one is left."""
        with self._lock:
            since_s = time.monotonic() - _SILENT_S
            gone = [
                comm
                for comm, seen_s in self._pages.values()
                if seen_s < since_s and not self._in_cell
            ]
            for comm in gone:
                self._pages.pop(id(comm))
            left = bool(self._pages)
        for comm in gone:
            _quietly(comm.close)
        return left

    def _seen(self, comm: Comm) -> None:
        with self._lock:
            if id(comm) in self._pages:
                self._pages[id(comm)] = (comm, time.monotonic())

    def _left(self, comm: Comm) -> None:
        with self._lock:
            self._pages.pop(id(comm), None)
            if not self._pages:
                self._stop.set()

    def _cell_begins(self, *_: Any) -> None:
        self._in_cell = True

    def _cell_ended(self, *_: Any) -> None:
        """Signs of life that came meanwhile are read after this."""
        self._in_cell = False
        with self._lock:
            now_s = time.monotonic()
            self._pages = {key: (comm, now_s) for key, (comm, _) in self._pages.items()}


class _Pace:
    """How long to wait between readings, so that they stay within `_SHARE` on average."""

    def __init__(self) -> None:
        self._usual_s = 0.0
        self._began_s = 0.0

    def __enter__(self) -> None:
        self._began_s = time.thread_time()

    def __exit__(self, *_: object) -> None:
        spent_s = time.thread_time() - self._began_s
        # One dear reading in ten shall not stop the other nine.
        self._usual_s += (spent_s - self._usual_s) * 0.1

    def wait_s(self) -> float:
        return min(_LONGEST_PERIOD_S, max(_PERIOD_S, self._usual_s / _SHARE))


def _quietly(action: Callable[[], None]) -> None:
    try:
        action()
    except Exception:
        log.debug("ioscope: a page is gone already", exc_info=True)
