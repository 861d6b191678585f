"""The line of `%%ioscope`: its options, how they are read, and how it is taken off a cell."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from jupyter_ioscope import settings
from jupyter_ioscope.capture.profiler import CaptureOptions
from jupyter_ioscope.errors import InputError, IoscopeError
from jupyter_ioscope.paths import path_text
from jupyter_ioscope.terminal import Parser

MAGIC = "%%ioscope"
VARIABLE = "_ioscope"

Expand = Callable[[str], str]


class _Parser(Parser):
    """An argument parser that never ends the kernel."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{MAGIC}: {message} (see {MAGIC} --help)")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise InputError(message or "")


def parser() -> argparse.ArgumentParser:
    """The options of the magic."""
    made = _Parser(
        prog=MAGIC,
        add_help=False,
        description="Profile the loaders that this cell iterates. The cell itself is not changed.",
        epilog=f"The last profile stays in the variable {VARIABLE}: {VARIABLE}.diagnosis, "
        f"{VARIABLE}.compare(['workers']), {VARIABLE}.save('run.ioscope.json').",
    )
    made.add_argument("--help", "-h", action="store_true", help="show this text")
    made.add_argument(
        "--seconds",
        type=float,
        metavar="S",
        help="stop recording after S seconds; the cell goes on",
    )
    made.add_argument(
        "--batches",
        type=int,
        metavar="N",
        help="stop recording after N batches (25,000 without it); the cell goes on",
    )
    made.add_argument(
        "--rate",
        type=float,
        metavar="HZ",
        help="thread states and stacks per second, 1 to 200 (default 25)",
    )
    made.add_argument(
        "--stacks",
        action=argparse.BooleanOptionalAction,
        help="with or without a flame graph; without, the cost is lower",
    )
    made.add_argument(
        "--block-trace",
        action="store_true",
        help="also trace the requests of block devices; takes rights on tracefs (root)",
    )
    made.add_argument(
        "--live", action=argparse.BooleanOptionalAction, help="a line of progress under the cell"
    )
    made.add_argument("--save", metavar="PATH", help="also write the profile to PATH")
    made.add_argument("--label", default="", metavar="TEXT", help="a name for the report")
    made.add_argument(
        "--quiet", action="store_true", help=f"show nothing; the profile is in {VARIABLE}"
    )
    return made


def parse(line: str) -> argparse.Namespace:
    """The options on a `%%ioscope` line; those it does not name are the user's settings.

    Raises:
        InputError: an option is unknown or its value cannot be used.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise InputError(f"{MAGIC}: {error} in {line.strip()!r}") from error
    options = parser().parse_args(words)
    if options.save is not None:
        path_text(options.save, "--save", "the path of the file to write")
    usual = settings.current()
    options.live = usual.live_line if options.live is None else options.live
    options.capture = CaptureOptions(
        seconds=options.seconds,
        batches=options.batches,
        rate_hz=usual.rate_hz if options.rate is None else options.rate,
        stacks=usual.stacks if options.stacks is None else options.stacks,
        label=options.label,
        block_trace=options.block_trace,
    )
    return options


def split(cell: str) -> tuple[str, str] | None:
    """(options, the rest) of a cell whose first line with text is `%%ioscope`, else None."""
    head, _, rest = cell.lstrip("\n").partition("\n")
    words = head.split(None, 1)
    if not words or words[0] != MAGIC:
        return None
    return (words[1] if len(words) > 1 else ""), rest


def expander(names: Mapping[str, Any]) -> Expand:
    """What fills the user's variables into a line, `{path}` or `$path`, as IPython does for every
    other magic. A line that cannot be filled stays as it is."""
    from IPython.utils.text import DollarFormatter

    def expand(line: str) -> str:
        if "{" not in line and "$" not in line:
            return line
        try:
            return str(DollarFormatter().vformat(line, [], names))
        except Exception:  # the user's expressions may raise anything
            return line

    return expand


def _as_it_is(line: str) -> str:
    return line


def usable(line: str, expand: Expand = _as_it_is) -> argparse.Namespace | None:
    """Options of a line that means "profile this cell"; None for help or a mistake."""
    try:
        options = parse(expand(line))
    except IoscopeError:
        return None
    return None if options.help else options


def strip_magic(lines: list[str], expand: Expand = _as_it_is) -> list[str]:
    """Input transformer: take `%%ioscope` off, keep the line numbers.

    A line with `--help` or a mistake stays: the cell magic of that name then answers.
    """
    found = split("".join(lines))
    if found is None or usable(found[0], expand) is None:
        return lines
    rest = found[1].splitlines(keepends=True)
    if any(line.lstrip().startswith("%%") for line in rest[:1]):
        return rest  # another cell magic follows, which must come first
    return [f"# {MAGIC}\n", *rest]
