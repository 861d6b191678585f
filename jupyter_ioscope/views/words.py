"""Words of the report, and what makes text from a profile safe to show.

Names in a profile (files, functions, exceptions) are untrusted. `clean` makes them inert as plain
text; markup is escaped by the one view that writes markup.
"""

from __future__ import annotations

import re
import unicodedata

PART_LABELS: dict[str, str] = {
    "step": "training step",
    "cpu": "CPU",
    "run_queue": "waiting for a core",
    "disk": "disk",
    "page_fault": "page fault",
    "network": "network",
    "sleep": "sleep",
    "process": "another process",
    "gil": "GIL",
    "lock": "lock",
    "hand_over": "hand-over",
    "start_up": "start-up",
    "idle": "idle",
    "other": "blocked, reason not visible",
    "rest": "not attributed",
}

# The loop is as idle as a worker without a task, but its reader wants to know for what it waits.
NO_BATCH = "no batch ready"

# Terminal escape sequences: CSI, OSC (ended by BEL or ST), and two-character ones.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
# Directional overrides reorder what follows, so that a name could rewrite a whole sentence; the
# isolates and marks do the same more gently. Letters of right-to-left scripts need none of them.
_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_LINE_ENDS = re.compile(r"[\r\n\t\v\f\x85\u2028\u2029]+")
_KEEP_LINE_FEED = re.compile(r"\r\n?|[\v\f\x85\u2028\u2029]")


def clean(text: str, limit: int = 300) -> str:
    """`text` as one line of at most `limit`, without escapes, control and direction characters."""
    text = _LINE_ENDS.sub(" ", _ESCAPES.sub("", text[: 4 * limit + 1000]))
    return shorten(_printable(text).strip(), limit)


def clean_lines(text: str, limit: int = 4000) -> str:
    """Like `clean`, for source code: line feeds stay and tabs become four spaces."""
    text = _KEEP_LINE_FEED.sub("\n", _ESCAPES.sub("", text[: 4 * limit + 1000]))
    lines = [_printable(line.replace("\t", "    ")).rstrip() for line in text.split("\n")]
    return shorten("\n".join(lines).strip("\n"), limit)


def shorten(text: str, limit: int) -> str:
    """The first `limit` characters, the last of them an ellipsis where something was cut off."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _printable(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    kept = _DIRECTION.sub("", text)
    # Cc controls, Cs lone surrogates (undecodable file names), Co private use: nothing readable.
    return "".join(
        "\ufffd" if unicodedata.category(c) == "Cs" else c
        for c in kept
        if unicodedata.category(c) not in ("Cc", "Co")
    )


def columns_of(text: str) -> int:
    """Terminal columns that `text` takes: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def fit(text: str, columns: int) -> str:
    """`text` cut to at most `columns` terminal columns, an ellipsis where something is missing."""
    if columns_of(text) <= columns:
        return text
    kept, used = [], 0
    for char in text:
        used += _columns(char)
        if used > columns - 1:
            break
        kept.append(char)
    return "".join(kept).rstrip() + "…"


def wrap(text: str, columns: int, start: str = "", indent: str = "") -> list[str]:
    """`text` in lines of at most `columns`, the first led by `start` and all others by `indent`.

    Words longer than a line are cut at its end; a no-break space keeps number and unit together.
    """
    lines: list[str] = []
    lead, words = start, ""
    for word in text.split(" "):
        joined = f"{words} {word}" if words else word
        if columns_of(lead + joined) > columns and words:
            lines.append(lead + words)
            lead, joined = indent, word
        while joined and columns_of(lead + joined) > columns:
            head = _take(joined, columns - columns_of(lead)) or joined[:1]
            lines.append(lead + head)
            lead, joined = indent, joined[len(head) :]
        words = joined
    return [*lines, lead + words] if words else lines


def _take(text: str, columns: int) -> str:
    used = 0
    for index, char in enumerate(text):
        used += _columns(char)
        if used > columns:
            return text[:index]
    return text
