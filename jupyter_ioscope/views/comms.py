"""The kernel's end of the comms that JupyterLab's extension opens: `labextension/src/protocol.ts`.

A page opens a comm and names a report; the kernel answers with that report's state, or closes the
comm when it does not know the report (any more).
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from jupyter_ioscope.optional import ipython_shell

log = logging.getLogger("ioscope")

TARGET = "ioscope.report"


class Comm(Protocol):
    """What is used of `comm.base_comm.BaseComm`."""

    def send(self, data: dict[str, Any]) -> None: ...
    def close(self) -> None: ...
    def on_msg(self, callback: Callable[[dict[str, Any]], None]) -> None: ...
    def on_close(self, callback: Callable[[dict[str, Any]], None]) -> None: ...


class Reports:
    """Who answers for which report: report id -> what to do with a comm that was opened for it."""

    def __init__(self) -> None:
        self._joins: dict[str, Callable[[Comm], None]] = {}
        self._lock = threading.Lock()
        # Managers that know the target: one a kernel, and tests bring their own.
        self._managers: weakref.WeakSet[Any] = weakref.WeakSet()

    def add(self, report_id: str, join: Callable[[Comm], None]) -> None:
        with self._lock:
            self._joins[report_id] = join

    def remove(self, report_id: str) -> None:
        with self._lock:
            self._joins.pop(report_id, None)

    def opened(self, comm: Comm, message: dict[str, Any]) -> None:
        """A page opened a comm; called by the kernel."""
        try:
            data = message["content"]["data"]
            report_id = data.get("report_id") if isinstance(data, dict) else None
            with self._lock:
                join = self._joins.get(report_id) if isinstance(report_id, str) else None
            if join is None:
                comm.close()
            else:
                join(comm)
        except Exception:
            log.warning("ioscope: a page could not be connected", exc_info=True)

    def serve(self, manager: Any) -> None:
        """Answer comms of our target on a kernel's comm manager; the second time does nothing."""
        with self._lock:
            if manager in self._managers:
                return
            self._managers.add(manager)
        manager.register_target(TARGET, self.opened)


def kernel_comm_manager() -> Any | None:
    """The comm manager of the kernel that runs this process, None outside a kernel."""
    kernel = getattr(ipython_shell(), "kernel", None)
    return getattr(kernel, "comm_manager", None)


REPORTS = Reports()
