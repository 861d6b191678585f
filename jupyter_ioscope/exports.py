"""Profiles as files for other tools, and two profiles against each other: Python's doors and the
command line's."""

from __future__ import annotations

import argparse
import contextlib
import os
from typing import TYPE_CHECKING

from jupyter_ioscope.errors import InputError, ProfileFileError
from jupyter_ioscope.model import files
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.paths import path_text
from jupyter_ioscope.terminal import say, tell

if TYPE_CHECKING:
    from jupyter_ioscope.views.difference import Difference


class Exports:
    """What every recording can do with its profile beside showing it."""

    @property
    def profile(self) -> Profile:
        raise NotImplementedError

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the profile for another tool; the end of the name says which: `.speedscope.json`,
        `.trace.json` (Perfetto, Chrome's trace viewer) or `.folded` (flamegraph.pl).

        Raises:
            InputError: another ending, no such folder, or no stacks to write.
            ProfileFileError: the file cannot be written.
        """
        export(self.profile, path)

    def against(self, a: Exports | Profile) -> Difference:
        """This profile as B against another one as A, see `difference`."""
        return difference(a, self)


def export(profile: Exports | Profile, path: str | os.PathLike[str]) -> None:
    """Write a profile for another tool, see `Exports.export`."""
    from jupyter_ioscope.views.export import export as write

    write(_profile(profile), path)


def difference(a: Exports | Profile, b: Exports | Profile) -> Difference:
    """Flame graphs of B against A: a notebook draws them, `str()` tells what changed most.

    Raises:
        InputError: one of them has no stacks, or they have no threads of one kind in common.
    """
    from jupyter_ioscope.views.difference import Difference

    return Difference(_profile(a), _profile(b))


def _profile(value: Exports | Profile) -> Profile:
    found = value.profile if isinstance(value, Exports) else value
    if not isinstance(found, Profile):
        raise InputError(f"{type(value).__name__} is no profile: give what ioscope.load() returns")
    return found


def add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a file that record or p.save() wrote")
    text = "names that end in .speedscope.json, .trace.json (Perfetto, Chrome) or .folded"
    parser.add_argument("out", nargs="+", help=text)


def run_export(options: argparse.Namespace) -> int:
    profile = files.load(options.file)
    for path in options.out:
        export(profile, path)
        tell(f"exported: {path}")
    return 0


def add_difference(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", help="the profile before: a file that record or p.save() wrote")
    parser.add_argument("b", help="the profile after")
    parser.add_argument("--html", metavar="PATH", help="write the flame graphs as one page")


def run_difference(options: argparse.Namespace) -> int:
    found = difference(files.load(options.a), files.load(options.b))
    say(found)
    if options.html is not None:
        from jupyter_ioscope.views.page import page_of

        write_page(options.html, page_of(found.report(6000)), options.a, options.b)
    return 0


def write_page(path: str, html: str, *profiles: str) -> None:
    """Write a page made of the files `profiles`.

    Raises:
        InputError: it would take the place of one of them.
        ProfileFileError: it cannot be written.
    """
    path = path_text(path, "--html", "the path of the page to write")
    for profile in profiles:
        if os.path.exists(path) and os.path.samefile(path, profile):
            raise InputError(f"{path!r} is the profile itself: give another name for the page")
    there = os.path.lexists(path)
    try:
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(html)
    except OSError as error:
        if not there:  # a full disk leaves a part of a page that nobody can read
            with contextlib.suppress(OSError):
                os.unlink(path)
        raise ProfileFileError(f"cannot write {path!r}: {error.strerror}") from error
    tell(f"page: {path}")
