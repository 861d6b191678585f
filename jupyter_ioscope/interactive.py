"""Puts a report on the screen and answers its buttons.

Trials run in a thread of their own and their children, so the kernel stays free meanwhile; the
callbacks of the page only start that thread or set its cancel flag.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from jupyter_ioscope.errors import IoscopeError, TrialError
from jupyter_ioscope.optional import ipython_shell
from jupyter_ioscope.terminal import say
from jupyter_ioscope.views.payload import progress_payload
from jupyter_ioscope.views.results import payloads_of

if TYPE_CHECKING:
    from jupyter_ioscope.api import Recording
    from jupyter_ioscope.trials.compare import Progress

log = logging.getLogger("ioscope")


def in_kernel() -> bool:
    """Whether output goes to a notebook."""
    return hasattr(ipython_shell(), "kernel")


def show(recording: Recording) -> None:
    """Draw the report where a notebook can, print it elsewhere."""
    if not in_kernel():
        say(recording)
        return
    from IPython.display import display

    on_screen = ReportOnScreen(recording)
    bundle, shown_as = on_screen.bundle(), on_screen.report_id
    display(bundle, raw=True, metadata=on_screen.metadata, display_id=shown_as)  # type: ignore[no-untyped-call]


class ReportOnScreen:
    """One report that was shown, and the comparisons started from it, one at a time."""

    def __init__(self, recording: Recording) -> None:
        from jupyter_ioscope.views.widget import ReportChannel

        self._recording = recording
        self.report_id = uuid.uuid4().hex
        self._cancel = threading.Event()
        self._running = threading.Lock()
        self._channel = ReportChannel(self.report_id)
        self._channel.on_command(self.command)

    def bundle(self) -> dict[str, Any]:
        """What `display(..., raw=True)` gets."""
        return self._channel.bundle(self._recording, self._recording.variable)

    @property
    def metadata(self) -> dict[str, Any]:
        """What goes with `bundle` into its display."""
        return self._channel.metadata

    def command(self, command: Mapping[str, Any]) -> None:
        """A button was pressed. Short, and right on any thread."""
        if command["cmd"] == "cancel":
            self._cancel.set()
            self._say("cancelling", "Cancelling …", -1.0)
        elif command["cmd"] == "run_ab":
            toggles, whole = tuple(command["toggles"]), bool(command.get("wholeCell"))
            self._start(lambda cancel: self._compare(toggles, whole, cancel))
        elif command["cmd"] == "tune":
            self._start(self._tune)

    def _start(self, work: Callable[[threading.Event], bool]) -> None:
        """Run `work` in a thread; it says whether it was cancelled."""
        if not self._running.acquire(blocking=False):
            return  # the button is disabled while one runs; a second click changes nothing
        self._cancel = threading.Event()
        self._say("running", "Preparing the trials …", -1.0)
        threading.Thread(
            target=self._run, args=(work, self._cancel), name="ioscope-ab", daemon=True
        ).start()

    def _compare(self, toggles: tuple[str, ...], whole: bool, cancel: threading.Event) -> bool:
        found = self._recording.compare(
            toggles, on_progress=self._progress, cancel=cancel, whole_cell=whole
        )
        return found.cancelled

    def _tune(self, cancel: threading.Event) -> bool:
        return self._recording.tune(on_progress=self._progress, cancel=cancel).cancelled

    def _run(self, work: Callable[[threading.Event], bool], cancel: threading.Event) -> None:
        try:
            cancelled = work(cancel)
        except TrialError as error:
            self._say("cancelled" if cancel.is_set() else "failed", str(error), 1.0)
        except IoscopeError as error:
            self._say("failed", str(error), 1.0)
        except Exception as error:
            log.warning("ioscope: a comparison failed", exc_info=True)
            self._say("failed", f"{type(error).__name__}: {error}", 1.0)
        else:
            self._channel.comparisons([dict(one) for one in payloads_of(self._recording.results)])
            self._keep()  # before the buttons are free again
            self._say("cancelled" if cancelled else "done", "", 1.0)
        finally:
            self._running.release()

    def _keep(self) -> None:
        """Put what was found into the output itself, in all its forms: it is saved with the
        notebook, and stays where no kernel tells it any more."""
        if not in_kernel():
            return
        from IPython.display import update_display

        try:
            bundle, shown_as = self.bundle(), self.report_id
            update_display(bundle, raw=True, metadata=self.metadata, display_id=shown_as)  # type: ignore[no-untyped-call]
        except Exception:
            log.warning("ioscope: the output could not be brought up to date", exc_info=True)

    def _progress(self, progress: Progress) -> None:
        if not self._cancel.is_set():
            self._say("running", progress.text, progress.fraction)

    def _say(self, state: str, text: str, fraction: float) -> None:
        self._channel.progress(dict(progress_payload(state, text, fraction)))
