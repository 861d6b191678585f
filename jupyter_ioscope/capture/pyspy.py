"""Runs py-spy and reads its raw output."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

_PR_SET_PDEATHSIG = 1
_STOP_S = 2.0


class RawFrame(NamedTuple):
    name: str
    file: str
    line: int


class RawStack(NamedTuple):
    """`samples` of one thread with equal frames, outermost first. `tid` is 0 where unknown. Each
    stands for `weight` periods of the quick pace, see `two_pace`."""

    pid: int
    tid: int
    thread: str
    frames: tuple[RawFrame, ...]
    samples: int
    weight: int = 1


def find_py_spy() -> str | None:
    """The py-spy of this environment, else the one on PATH, else None."""
    beside = os.path.join(os.path.dirname(sys.executable), "py-spy")
    if os.access(beside, os.X_OK):
        return beside
    return shutil.which("py-spy")


class PySpy:
    """One running py-spy, in its own session so that a kernel interrupt does not reach it."""

    def __init__(self, executable: str, pid: int, path: str, rate_hz: float) -> None:
        self.path = path
        self.heard = self._asked = False
        self._process = subprocess.Popen(
            [
                *(executable, "record", "--pid", str(pid), "--subprocesses", "--threads"),
                *("--idle", "--nonblocking", "--full-filenames", "--format", "raw"),
                *("--rate", str(max(1, round(rate_hz))), "--output", path),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
        assert self._process.stdout is not None
        self._out = self._process.stdout
        os.set_blocking(self._out.fileno(), False)

    @property
    def pid(self) -> int:
        return self._process.pid

    def settled(self) -> bool:
        """Whether it has attached (it speaks only then) or has given up."""
        self._drain()
        return self.heard or self._process.poll() is not None

    def _drain(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while self._out.fileno() >= 0 and (text := os.read(self._out.fileno(), 4096)):
                self.heard = self.heard or bool(text.strip())

    def running(self) -> bool:
        self._drain()
        return self._process.poll() is None

    def ask_to_stop(self) -> None:
        """Let it write its file and end, without waiting for that. Harmless when repeated."""
        if not self._asked and self._process.poll() is None:
            # Only SIGINT makes it write what it has; SIGTERM loses everything. A second one would
            # end it in the middle of writing.
            self._process.send_signal(signal.SIGINT)
        self._asked = True

    def stop(self) -> str:
        """End it; "" if it wrote its file, else the reason why there is none."""
        self.ask_to_stop()
        deadline_s = time.monotonic() + _STOP_S
        while self.running():
            if time.monotonic() > deadline_s:
                self._process.kill()
                break
            time.sleep(0.005)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._out.close()
        return self._verdict()

    def _verdict(self) -> str:
        code = self._process.returncode
        if code is None or code == -signal.SIGKILL:
            return "py-spy was killed, or did not answer when it was asked to stop"
        if code != 0:
            return f"py-spy failed (exit code {code})"
        try:
            return "" if os.path.getsize(self.path) else "py-spy took no sample"
        except OSError:
            return "py-spy wrote no file"


def _end_with_parent() -> None:
    # Runs between fork and exec: a helper that is killed must not leave py-spy behind.
    with contextlib.suppress(Exception):
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # the helper ignores it
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


# process 12:"python x.py";process 34:"python x.py";thread (34): MainThread;f (a.py:1);g (b.py:2) 17
# A command line may itself hold line ends: a record ends where the next one begins.
_RECORD = re.compile(r'\n(?=process \d+:")')
_PROCESS = re.compile(r'process (\d+):"')
_THREAD = re.compile(r"(?<=\");thread \((\w+)\)(?:: ([^;]*))?(?:;|$)")
_FRAME = re.compile(r"(.*?) \((.*?)(?::(\d+))?\)(?:;|$)", re.DOTALL)
_FRAME_WITH_LINE = re.compile(r"(.*?) \((.*?):(\d+)\)(?:;|$)", re.DOTALL)


def parse_raw(text: str) -> Iterator[RawStack]:
    """The stacks of a raw file; records that are none are passed over.

    Names and paths may hold blanks, semicolons, quotes and parentheses: a frame ends only at
    `:<line>)` before a semicolon or the end.
    """
    for record in _RECORD.split(text):
        body, _, count = record.rstrip("\n").rpartition(" ")
        thread = _THREAD.search(body)
        if not count.isdigit() or thread is None:
            continue
        owners = _PROCESS.findall(body, 0, thread.start())
        if not owners:
            continue
        frames = tuple(_frames(body[thread.end() :]))
        number = thread.group(1)
        tid = int(number) if number.isdigit() else 0
        yield RawStack(int(owners[-1]), tid, thread.group(2) or "", frames, int(count))


def _frames(text: str) -> Iterator[RawFrame]:
    position = 0
    while position < len(text):
        found = _FRAME_WITH_LINE.match(text, position) or _FRAME.match(text, position)
        if found is None:
            yield RawFrame(text[position:], "", 0)
            return
        name, file, line = found.groups()
        yield RawFrame(name, file, int(line or 0))
        position = found.end()
