"""The live line under a running cell: one text, replaced in place."""

from __future__ import annotations

import contextvars
import threading
import time
from typing import Any

from jupyter_ioscope.api import Recording
from jupyter_ioscope.views.text import live_line

_PERIOD_S = 0.5  # two updates a second, half of what a front end should be given
# By this mark JupyterLab's extension finds the line for its status bar (labextension/src/status.ts)
_MARK = {"ioscope": {"live": True}}


class LiveLine:
    """Shows a recording's progress while its cell runs. Inert outside a Jupyter kernel."""

    def __init__(self, shell: Any, recording: Recording) -> None:
        self._recording = recording
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._handle: Any = None
        self._active = hasattr(shell, "kernel")
        self._started_s = time.monotonic()

    def start(self) -> None:
        """Put the line down, from the main thread: a thread may only update it."""
        if not self._active:
            return
        from IPython.display import display

        first = _text("ioscope is recording")
        self._handle = display(first, metadata=_MARK, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        # The thread inherits the context, in which the kernel keeps whose output this is.
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run, args=(self._run,), name="ioscope-live", daemon=True
        )
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(_PERIOD_S):
            batches, per_s, waiting = self._recording.progress()
            seconds = time.monotonic() - self._started_s
            self._update(live_line(per_s, waiting, seconds) if batches else "ioscope is recording")

    def _update(self, text: str) -> None:
        try:
            self._handle.update(_text(text), metadata=_MARK, raw=True)
        except Exception:  # a closed front end must not end the recording
            self._stop.set()

    def end(self, text: str) -> None:
        """Stop updating and leave `text` in place of the line."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(2)
            self._thread = None
        if self._handle is not None:
            self._update(text)


def _text(text: str) -> dict[str, str]:
    return {"text/plain": text}
