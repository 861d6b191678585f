"""The one place where text goes to a terminal, a pipe or a log: what its encoding lacks is written
plainer, and what would steer a terminal is written out."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from typing import IO, Any

from jupyter_ioscope.errors import IoscopeError

# What our own texts contain beyond ASCII, for streams that cannot show it.
_PLAINER = {
    "\u00a0": " ", "–": "-", "−": "-", "×": "x", "…": "...", "µ": "u", "±": "+-", "“": '"',
    "”": '"', "’": "'", "·": ".", "→": "->", "≥": ">=", "≤": "<=", "≈": "~", "∞": "inf", "★": "*",
    "█": "#", "▓": "%", "▒": "+", "░": ".", "▞": "/", "▚": "\\", "╳": "X", "╬": "#",
}  # fmt: skip
_KEPT = "\n\t"


def say(text: object = "", stream: IO[str] | None = None) -> None:
    """Print a text to `stream` (standard output), whatever characters are in it. Nothing is said
    where the stream is closed, as by `>&-` or by a script."""
    out = sys.stdout if stream is None else stream
    if out is None or getattr(out, "closed", False):
        return
    with whatever_reads(out):
        print(fitted(str(text), out), file=out)


def flush() -> None:
    """Write out what was said, before the exit code is decided."""
    out = sys.stdout
    if out is not None and not out.closed:
        with whatever_reads(out):
            out.flush()


@contextlib.contextmanager
def whatever_reads(out: IO[str]) -> Iterator[None]:
    """What is written inside does not fail where nobody reads on, as behind `| head`.

    Raises:
        IoscopeError: it cannot be written for another reason: a full disk.
    """
    try:
        yield
    except BrokenPipeError:
        _to_nobody(out)
    except OSError as error:
        _to_nobody(out)
        raise IoscopeError(f"the output cannot be written: {error.strerror or error}") from error


def _to_nobody(out: IO[str]) -> None:
    """What is left in the stream's buffer goes nowhere: Python would complain when it ends."""
    nobody = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nobody, out.fileno())
    os.close(nobody)


def tell(text: object) -> None:
    """The same to standard error: what is no part of the result."""
    say(text, sys.stderr)


def fitted(text: str, stream: Any) -> str:
    """`text` as `stream` can write it: characters that its encoding lacks become plainer ones, or
    `\\xe9`; so do control characters, of which a file's name may be full."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    odd = {one for one in text if not (" " <= one <= "~" or one in _KEPT)}
    plain = {one: _written(one, encoding) for one in odd}
    changed = {ord(one): other for one, other in plain.items() if one != other}
    return text.translate(changed) if changed else text


def _written(one: str, encoding: str) -> str:
    if ord(one) < 0x20 or 0x7F <= ord(one) < 0xA0:
        return f"\\x{ord(one):02x}"
    try:
        one.encode(encoding)
    except UnicodeEncodeError:
        return _PLAINER.get(one, one.encode("ascii", "backslashreplace").decode())
    except LookupError:  # a stream of somebody's own, with an encoding of its own
        pass
    return one


class Parser(argparse.ArgumentParser):
    """A parser whose help and errors go the same way."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            out = sys.stderr if file is None else file
            super()._print_message(fitted(message, out), out)
