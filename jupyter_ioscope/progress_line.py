"""One line that says what is under way, overwritten in place: on a terminal or under a cell."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from jupyter_ioscope.terminal import fitted

_EVERY_S = 0.25
_COLUMNS = 90


class ProgressLine:
    """`show` may be called as often as one likes, from the thread that runs the command.

    Where `live` is False (a log file, a pipe) only the first text is written, as a line, and those
    to be kept.
    """

    def __init__(self, stream: TextIO, live: bool) -> None:
        self._stream, self._live = stream, live
        self._last_s = 0.0
        self._shown = ""

    @classmethod
    def of_terminal(cls) -> ProgressLine:
        """On standard error, so that what is printed as a result stays clean."""
        return cls(sys.stderr, sys.stderr.isatty())

    @classmethod
    def of_cell(cls) -> ProgressLine:
        """Under the cell that runs a line."""
        return cls(sys.stdout, True)

    def show(self, text: str, keep: bool = False) -> None:
        if not self._live:
            if keep or not self._shown:
                self._shown = text
                self._stream.write(fitted(f"{text}\n", self._stream))
            return
        now = time.monotonic()
        if self._shown and now - self._last_s < _EVERY_S:
            return
        self._last_s = now
        if fitted(text[:_COLUMNS], self._stream) != self._shown:  # a notebook keeps every writing
            self._write(text[:_COLUMNS])

    def clear(self) -> None:
        """Take the line away: the result follows."""
        if self._live and self._shown:
            self._write("")
            self._stream.write("\r")
            self._stream.flush()

    def _write(self, text: str) -> None:
        text = fitted(text, self._stream)
        self._stream.write("\r" + text.ljust(len(self._shown)))
        self._stream.flush()
        self._shown = text
