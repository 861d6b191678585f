"""Paths that users give: one sentence for what is none."""

from __future__ import annotations

import os
import stat

from jupyter_ioscope.errors import InputError

# What a path leads to that is neither a file nor a folder: reading it may never end, and a file
# put in its place would take it away.
_SPECIAL = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISCHR, "a character device"),
)


def path_text(path: object, name: str = "path", wanted: str = "the path of a file") -> str:
    """A path as text; `~` at its beginning is the home folder, as a notebook's user expects.

    Args:
        name: the argument's name, for the sentence.
        wanted: what should be given.

    Raises:
        InputError: it is no path (None, a number), is empty, or holds a NUL.
    """
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise InputError(f"{name} is {path!r}: give {wanted}")
    text = os.fsdecode(path)
    if not text:
        raise InputError(f"{name} is empty (''): give {wanted}")
    if "\0" in text:
        raise InputError(f"{name} is {text!r}, which holds a NUL character: give {wanted}")
    return os.path.expanduser(text)


def absolute(text: str) -> str:
    """The path from the root on.

    Raises:
        InputError: it is relative, and the working folder of this process is gone.
    """
    try:
        return os.path.abspath(text)
    except FileNotFoundError as error:
        raise InputError("the working folder of this process is gone: os.chdir() first") from error


def special(mode: int) -> str:
    """What the mode of `os.stat` says beside files and folders ("a pipe"); "" for these two."""
    return next((name for test, name in _SPECIAL if test(mode)), "")


def nothing_in(found: os.stat_result) -> str:
    """What to call a file of which `os.stat` says 0 bytes: "empty", unless the kernel writes it
    while it is read and knows no size before, as it does in /proc."""
    for root in ("/proc", "/sys"):
        try:
            if os.stat(root).st_dev == found.st_dev:
                return f"made by the kernel while it is read (in {root})"
        except OSError:
            continue
    return "empty (0 bytes)"


def special_at(path: str) -> str:
    """The same of what lies at a path; "" also where nothing does, or it cannot be looked at."""
    try:
        return special(os.stat(path).st_mode)
    except (OSError, ValueError):
        return ""
