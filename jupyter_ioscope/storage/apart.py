"""Runs what touches a path in a child process with a deadline, so that a device that hangs holds up
nobody but the child.

The child writes one line of JSON for each step. It ends itself, cleaning up, when it is told to or
when its parent is gone; where the kernel keeps it inside a request, it is left behind and said so.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from jupyter_ioscope.debugger import undebugged
from jupyter_ioscope.errors import CaptureError, InputError
from jupyter_ioscope.units import seconds

_ROOT = str(Path(__file__).resolve().parent.parent.parent)
# Isolated (-I) and without site packages (-S): the child needs the standard library and this
# package only, starts in a third of the time, and no file beside a notebook gets in its way.
_CODE = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from jupyter_ioscope.storage.apart_child import main; main()"
)
_CLEAN_UP_S = 2.0
_GONE_S = 0.5
_TOUCH_S = 10.0
_REMOVE_S = 2.0


_stuck: list[subprocess.Popen[bytes]] = []


class Outcome(NamedTuple):
    """What a child said. `refused` is its sentence why it could not, "" if it could.

    `silent` is what it was doing when it was given up, "" otherwise; `stuck_pid` is the child where
    the kernel would not let it go, 0 otherwise; `left` is its private folder where that could not
    be removed, "" otherwise.
    """

    rows: tuple[dict[str, Any], ...]
    refused: str
    silent: str
    stuck_pid: int
    left: str = ""


def run(
    job: str,
    silence_s: float,
    total_s: float,
    on_row: Callable[[dict[str, Any]], None] | None = None,
    **arguments: Any,
) -> Outcome:
    """Run a job of `apart_child` and collect its rows.

    Args:
        silence_s: seconds without a word after which the child is given up.
        total_s: seconds after which it is given up in any case.
        on_row: called with each row as it comes.

    Raises:
        CaptureError: the child could not be started, or died for a reason of its own.
    """
    _stuck[:] = [process for process in _stuck if process.poll() is None]
    process = _started(job, arguments)
    rows: list[dict[str, Any]] = []
    doing, stuck, left = "starting", 0, ""
    ended = False
    try:
        ended, doing = _listen(process, rows, silence_s, total_s, on_row)
    finally:
        if ended:
            process.wait()
        else:
            stuck = _end(process)
        assert process.stdout is not None
        process.stdout.close()
        left = _left(rows, process.returncode or 0, stuck)
    refused = next((str(row["refused"]) for row in rows if "refused" in row), "")
    if ended and process.returncode and not refused:
        more = f"; its folder {left!r} is left" if left else ""
        raise CaptureError(f"the measuring process failed: {_why(rows, process.returncode)}{more}")
    return Outcome(tuple(rows), refused, "" if ended else doing, stuck, left)


def _left(rows: list[dict[str, Any]], code: int, stuck: int) -> str:
    """Remove what a child that was killed could not; its private folder where that is not possible
    either. Another child does it: the storage may not answer that request."""
    named = (row["path"] for row in rows if row["step"] == "folder" and "path" in row)
    folder = str(next(named, ""))
    if not folder or stuck or code >= 0:  # one that came to its own end took the folder along
        return folder if stuck else ""
    done = run("remove", _REMOVE_S, _REMOVE_S, path=folder).rows
    return "" if any(row.get("done") for row in done) else folder


def refuse_silent(path: str) -> None:
    """Let a child look at an absolute path first, and at the beginning of a file.

    Raises:
        InputError: it does not answer within ten seconds.
    """
    outcome = run("touch", _TOUCH_S, _TOUCH_S, path=path)
    if outcome.silent:
        raise InputError(
            f"{path!r} does not answer: given up after {seconds(_TOUCH_S)}, while "
            f"{outcome.silent}; is its device or server there?"
        )


def _why(rows: list[dict[str, Any]], code: int) -> str:
    return next((str(row["failed"]) for row in rows if "failed" in row), f"exit code {code}")


def _started(job: str, arguments: dict[str, Any]) -> subprocess.Popen[bytes]:
    if not sys.executable:
        raise CaptureError("this Python does not know its own executable")
    request = json.dumps({"job": job, "parent": os.getpid(), **arguments})
    try:
        with undebugged():
            return subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _CODE, _ROOT, request],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
    except OSError as error:
        raise CaptureError(f"the measuring process could not be started: {error}") from error


def _listen(
    process: subprocess.Popen[bytes],
    rows: list[dict[str, Any]],
    silence_s: float,
    total_s: float,
    on_row: Callable[[dict[str, Any]], None] | None,
) -> tuple[bool, str]:
    """(whether the child came to its end, what it was doing last)."""
    assert process.stdout is not None
    fd = process.stdout.fileno()
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    last_s = time.monotonic() + total_s
    doing, unread = "starting", b""
    while True:
        left_s = min(silence_s, last_s - time.monotonic())
        if left_s <= 0 or not poll.poll(left_s * 1000):
            return False, doing
        text = os.read(fd, 1 << 16)
        if not text:
            return True, doing
        *lines, unread = (unread + text).split(b"\n")
        for line in lines:
            row = json.loads(line)
            rows.append(row)
            doing = str(row.get("doing") or doing)
            if on_row is not None:
                on_row(row)


def _end(process: subprocess.Popen[bytes]) -> int:
    """Let the child clean up, or else kill it; its id where even that does not end it."""
    for number, wait_s in ((signal.SIGTERM, _CLEAN_UP_S), (signal.SIGKILL, _GONE_S)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait_s)
            return 0
    _stuck.append(process)  # it waits inside the kernel; taken away by a later call
    return process.pid
