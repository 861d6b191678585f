"""What the parent needs to follow a job and what it gets back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.trials.crashes import worker_gone
from jupyter_ioscope.units import seconds


class Cancelled(Exception):
    """The user cancelled while a job was running."""


@dataclass
class Watch:
    """How a job is followed. `silence_s`: a job that neither ends nor reports for this long hangs.
    `memory_bytes`: a job whose processes hold more is stopped, before the machine runs out;
    0 for no limit. `tick` is called with the newest report a few times a second."""

    silence_s: float
    cancel: threading.Event | None = None
    tick: Callable[[dict[str, Any]], None] = field(default=lambda report: None)
    memory_bytes: int = 0

    def cancelled(self) -> bool:
        return self.cancel is not None and self.cancel.is_set()


def hanging(arm: str, silence_s: float) -> TrialError:
    """What to say of an arm that gave no batch for so long."""
    return TrialError(
        f"arm {arm} hangs: it gave no batch for {seconds(silence_s)}; to see where, draw a batch "
        "with num_workers=0 in a cell and interrupt it: the traceback ends at the line that waits"
    )


def result_of(message: dict[str, Any], arm: str) -> dict[str, Any]:
    """The result of a job's last message.

    Raises:
        TrialError: the job failed; the text names the arm and holds the original exception.
    """
    if message["kind"] == "result":
        result: dict[str, Any] = message["result"]
        return result
    text = " ".join(message["text"].split())
    last = _last_line(message["text"]) or text
    gone = worker_gone(text) if message["type"] == "RuntimeError" else ""
    what = gone or f"{message['type']}: {last}"
    error = TrialError(f"arm {arm} failed: {what}")
    error.__cause__ = RemoteTraceback(message["traceback"])
    raise error


def _last_line(text: str) -> str:
    """torch puts a worker's whole traceback into the text; its last line names the cause."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and "Traceback" in text:
        return f"{lines[0].strip()} {lines[-1].strip()}"
    return " ".join(line.strip() for line in lines)


class RemoteTraceback(Exception):
    """Carries the traceback of another process as text."""

    def __init__(self, text: str) -> None:
        super().__init__("\n" + text)
