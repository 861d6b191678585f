"""The pipe to the helper process: starting it, asking it, ending it. Every wait has a deadline."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from jupyter_ioscope.debugger import undebugged

_END_S = 3.0  # the helper may be busy ending py-spy
_ROOT = str(Path(__file__).resolve().parent.parent.parent)
# Run by -c and not by -m: -m puts the current folder first on the path, and a user's own
# `queue.py` or `json.py` beside the notebook would then be imported by the helper.
_CODE = (
    "import sys; sys.path[:] = [p for p in sys.path if p] + [sys.argv.pop(1)]; "
    "from jupyter_ioscope.capture.sampler_process import main; main()"
)


class HelperError(Exception):
    """The helper could not be started, died, or did not answer in time. The text is the reason."""


class HelperLink:
    """One running helper process."""

    def __init__(self, proc: str, sys_root: str) -> None:
        if not sys.executable:
            raise HelperError("this Python does not know its own executable")
        hidden = ("PYTHONINSPECT", "PYTHONSTARTUP", "PYTHONPROFILEIMPORTTIME")
        environment = {name: text for name, text in os.environ.items() if name not in hidden}
        command = [sys.executable, "-c", _CODE, _ROOT, "--parent", str(os.getpid())]
        try:
            with undebugged():
                self._process = subprocess.Popen(
                    [*command, "--proc", proc, "--sys", sys_root],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    env=environment,
                )
        except OSError as error:
            raise HelperError(f"the helper process could not be started: {error}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self._unread = bytearray()
        self._numbers = itertools.count(1)

    @property
    def pid(self) -> int:
        return self._process.pid

    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, do: str, within_s: float, **content: Any) -> dict[str, Any]:
        """Send a command and wait for its answer.

        Raises:
            HelperError: dead, too late, or the helper says that it failed.
        """
        number = next(self._numbers)
        until_s = time.monotonic() + within_s
        try:
            os.write(self._in.fileno(), json.dumps({"id": number, "do": do, **content}).encode())
            os.write(self._in.fileno(), b"\n")
        except (OSError, ValueError) as error:
            raise HelperError(self._why_dead()) from error
        # An answer to an earlier command, whose wait was interrupted, is passed over.
        while True:
            answer = json.loads(self._line(until_s))
            if answer.get("id") == number:
                break
        if "error" in answer:
            raise HelperError(f"the helper process failed: {answer['error']}")
        return dict(answer)

    def _line(self, until_s: float) -> bytes:
        poll = select.poll()
        poll.register(self._out.fileno(), select.POLLIN)
        searched = 0
        while True:
            end = self._unread.find(b"\n", searched)
            if end >= 0:
                line = bytes(self._unread[:end])
                del self._unread[: end + 1]
                return line
            searched = len(self._unread)
            left_s = until_s - time.monotonic()
            if left_s <= 0 or not poll.poll(left_s * 1000):
                raise HelperError("the helper process did not answer in time")
            text = os.read(self._out.fileno(), 1 << 20)
            if not text:
                raise HelperError(self._why_dead())
            self._unread += text

    def _why_dead(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(0.5)
            return f"the helper process ended early (exit code {code})"
        return "the helper process closed its pipe"

    def forget(self) -> None:
        """In a forked child: let go of the parent's helper without touching it."""
        for pipe in (self._in, self._out):
            with contextlib.suppress(OSError):
                pipe.close()
        self._process.returncode = 0  # not ours to wait for

    def close(self, kill: bool = False) -> None:
        """End the helper; it ends by itself when its stdin does."""
        with contextlib.suppress(OSError):
            self._in.close()
        if not kill:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
        if self._process.poll() is None:
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
        with contextlib.suppress(OSError):
            self._out.close()
