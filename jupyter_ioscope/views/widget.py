"""A report's line to the pages that show it, whatever carries it: anywidget or comm.

The same few values go both ways (labextension/src/payload.ts): commands from the page; progress and
comparisons to it. Outside a kernel a channel is inert.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from jupyter_ioscope.model.comparison import Offer
from jupyter_ioscope.model.diagnosis import Diagnosis
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.views.anywidget_report import report_widget, view_metadata, view_part
from jupyter_ioscope.views.bundle import METADATA, mime_bundle
from jupyter_ioscope.views.commands import Command, read_command
from jupyter_ioscope.views.comms import REPORTS, Comm, Reports, kernel_comm_manager
from jupyter_ioscope.views.results import Result
from jupyter_ioscope.views.shapes import MIME, Bundle
from jupyter_ioscope.views.throttle import Throttle

log = logging.getLogger("ioscope")

KEPT = 8  # reports whose buttons work: each keeps its profile and the user's loader alive


class Recorded(Protocol):
    """What a report is made from."""

    @property
    def profile(self) -> Profile: ...
    @property
    def diagnosis(self) -> Diagnosis: ...
    @property
    def offers(self) -> Sequence[Offer]: ...
    @property
    def results(self) -> Sequence[Result]: ...


_open: OrderedDict[str, ReportChannel] = OrderedDict()
_open_lock = threading.Lock()


class ReportChannel:
    """Thread-safe. Updates go out at most four times a second, the last one always.

    The newest `KEPT` channels stay open until `close`; older ones are closed, and their pages show
    that the kernel does not answer for them any more.
    """

    def __init__(
        self, report_id: str, *, reports: Reports = REPORTS, manager: Any | None = None
    ) -> None:
        self.report_id = report_id
        self._reports = reports
        self._callbacks: list[Callable[[Command], None]] = []
        self._comms: list[Comm] = []
        self._widgets: list[Any] = []
        self._own: Any = None  # the widget of `bundle`
        self.metadata: dict[str, Any] = dict(METADATA)  # goes with `bundle` into its display
        self._state: dict[str, Any] = {}  # what a page that opens later must be told
        self._lock = threading.RLock()
        self._throttle = Throttle(self._broadcast)
        manager = manager or kernel_comm_manager()
        if manager is not None:
            reports.serve(manager)
            reports.add(report_id, self._join)
            _keep(self)

    def bundle(self, recorded: Recorded, variable: str = "_ioscope") -> Bundle:
        """What `display(..., raw=True)` gets: the report in four forms and, where it can run, as a
        widget tied to this channel; one widget, however often it is asked for."""
        made = mime_bundle(
            recorded.profile,
            recorded.diagnosis,
            recorded.offers,
            tuple(recorded.results),
            variable,
            self.report_id,
        )
        if kernel_comm_manager() is None:
            return made
        widget = self._own or report_widget(made, made[MIME])
        if widget is None:
            return made
        if self._own is None:
            self._own = widget
            self.attach(widget)
        self.metadata = {**METADATA, **view_metadata(widget)}
        return {**made, **view_part(widget)}

    def attach(self, widget: Any) -> None:
        """Carry this channel over a widget of `report_widget` as well."""
        with self._lock:
            self._widgets.append(widget)
        widget.on_command(self._received)

    def on_command(self, callback: Callable[[Command], None]) -> None:
        """`callback` gets every valid command, on whatever thread the kernel reads messages."""
        with self._lock:
            self._callbacks.append(callback)

    def progress(self, progress: Mapping[str, Any]) -> None:
        """Show how a comparison stands (`IProgress`)."""
        self._say(progress=dict(progress))

    def comparisons(self, comparisons: Sequence[Mapping[str, Any]]) -> None:
        """Show these comparisons (`IComparison`), all of them."""
        self._say(comparisons=[dict(one) for one in comparisons])

    def close(self) -> None:
        """Deliver what waits, then leave the pages: their buttons end, the report stays."""
        self._throttle.close()
        self._reports.remove(self.report_id)
        with _open_lock:
            if _open.get(self.report_id) is self:
                del _open[self.report_id]
        with self._lock:
            comms, self._comms, self._widgets, self._callbacks = self._comms, [], [], []
        for comm in comms:
            _quietly(comm.close)

    def _say(self, **state: Any) -> None:
        with self._lock:
            self._state.update(state)
        self._throttle.put(**state)

    def _join(self, comm: Comm) -> None:
        comm.on_msg(lambda message: self._received(message.get("content", {}).get("data")))
        comm.on_close(lambda _message: self._left(comm))
        with self._lock:
            self._comms.append(comm)
            # The answer tells the page that its kernel is here, even when it is empty. Sent under
            # the lock, so that no newer state overtakes it.
            comm.send(dict(self._state))

    def _left(self, comm: Comm) -> None:
        with self._lock:
            self._comms = [one for one in self._comms if one is not comm]

    def _received(self, content: object) -> None:
        command = read_command(content)
        if command is None:
            return
        with self._lock:
            callbacks = list(self._callbacks)
        for callback in callbacks:
            try:
                callback(command)
            except Exception:
                log.warning("ioscope: a command of the page failed", exc_info=True)

    def _broadcast(self, state: dict[str, Any]) -> None:
        with self._lock:
            comms, widgets = list(self._comms), list(self._widgets)
        for comm in comms:
            if not _quietly(comm.send, state):
                self._left(comm)
        for widget in widgets:
            _quietly(widget.set_trait_values, state)


def _keep(channel: ReportChannel) -> None:
    with _open_lock:
        _open[channel.report_id] = channel
        old = list(_open.values())[:-KEPT]
    for one in old:
        one.close()


def _quietly(call: Callable[..., Any], *arguments: Any) -> bool:
    """Whether `call` worked: a page that has gone must not end a comparison."""
    try:
        call(*arguments)
    except Exception:
        log.debug("ioscope: a page did not take a message", exc_info=True)
        return False
    return True
