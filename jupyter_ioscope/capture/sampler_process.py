"""The helper process: one a kernel, started once, watching on a fixed beat.

It speaks JSON lines on stdin and stdout: `{"id": 1, "do": "start", ...}` is answered by
`{"id": 1, ...}`. It ends when its stdin ends, and also when its parent is gone: a forked worker
may hold the other end of the pipe open.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import select
import shutil
import signal
import sys
import time
from typing import Any, NoReturn

from jupyter_ioscope.capture.request import FOLDER_PREFIX, SamplerRequest
from jupyter_ioscope.capture.session import Session

_PARENT_POLL_S = 1.0
_PARENT_ENDS_S = 1.0  # its pipe closes a little before it is gone
_STDIN, _STDOUT = 0, 1


class Helper:
    """Reads commands and runs at most one session."""

    def __init__(self, parent: int, proc: str, sys_root: str) -> None:
        self._parent, self._proc, self._sys = parent, proc, sys_root
        self._session: Session | None = None
        self._folder: str | None = None  # of the profile that is being recorded
        self._starting: int | None = None  # id of the start that is not answered yet
        self._broken = "nothing to stop"
        self._unread = b""
        self._parent_due_s = 0.0

    def run(self) -> None:
        poll = select.poll()
        poll.register(_STDIN, select.POLLIN)
        try:
            while self._parent_lives():
                if poll.poll(self._timeout_ms()) and not self._read_commands():
                    return
                if self._session is not None:
                    self._tick(self._session)
        finally:
            self._drop_session()
            self._sweep()

    def _sweep(self) -> None:
        """Remove the folder of a profile whose kernel was killed: nobody else will."""
        folder, self._folder = self._folder, None
        if folder is None or not os.path.basename(folder).startswith(FOLDER_PREFIX):
            return
        until_s = time.monotonic() + _PARENT_ENDS_S
        while os.getppid() == self._parent:
            if time.monotonic() > until_s:
                return  # it lives, and removes its folder itself
            time.sleep(0.02)
        shutil.rmtree(folder, ignore_errors=True)

    def _timeout_ms(self) -> float:
        if self._session is None:
            return _PARENT_POLL_S * 1000
        due_ms = self._session.due_in_s() * 1000
        return min(due_ms, 10.0) if self._starting is not None else due_ms

    def _parent_lives(self) -> bool:
        now_s = time.monotonic()
        if now_s < self._parent_due_s:
            return True
        self._parent_due_s = now_s + _PARENT_POLL_S
        return os.getppid() == self._parent

    def _read_commands(self) -> bool:
        text = os.read(_STDIN, 65536)
        if not text:
            return False
        *lines, self._unread = (self._unread + text).split(b"\n")
        for line in lines:
            self._obey(json.loads(line))
        return True

    def _obey(self, command: dict[str, Any]) -> None:
        number = command["id"]
        try:
            if command["do"] == "start":
                self._drop_session()
                self._starting = number
                request = SamplerRequest(**command["request"])
                self._session = Session(request, self._proc, self._sys)
                self._folder = request.session_dir
            elif command["do"] == "live":
                self._answer(number, live=self._session.newest() if self._session else {})
            elif command["do"] == "stop":
                session, self._session, self._starting = self._session, None, None
                self._folder = None
                result = _stopped(session) if session is not None else {"error": self._broken}
                self._answer(number, **result)
        except Exception as error:
            self._starting = None
            self._drop_session()
            self._answer(number, error=f"{type(error).__name__}: {error}")

    def _tick(self, session: Session) -> None:
        try:
            session.tick()
            if self._starting is not None and session.settled():
                number, self._starting = self._starting, None
                self._answer(number, rights=session.settled_rights())
        except Exception as error:
            self._broken = f"{type(error).__name__}: {error}"
            if self._starting is not None:
                self._answer(self._starting, error=self._broken)
                self._starting = None
            self._drop_session()

    def _drop_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _answer(self, number: int, **content: Any) -> None:
        text = json.dumps({"id": number, **content}).encode() + b"\n"
        while text:
            text = text[os.write(_STDOUT, text) :]


def _stopped(session: Session) -> dict[str, Any]:
    """What a session saw. One that fails leaves nothing behind either."""
    try:
        return session.stop()
    except BaseException:
        session.close()
        raise


def _leave(_number: int, _frame: object) -> NoReturn:
    sys.exit(0)  # what is being recorded cleans up after itself


def _raise_file_limit() -> None:
    """Four descriptors a thread are kept open; the soft limit is often 1024."""
    try:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        pass


def main() -> None:
    """Entry point; started by `sampler.Sampler` only."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--proc", default="/proc")
    parser.add_argument("--sys", default="/sys")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    _raise_file_limit()
    try:
        Helper(options.parent, options.proc, options.sys).run()
    except BrokenPipeError:
        sys.exit(0)


if __name__ == "__main__":
    main()
