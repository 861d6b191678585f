"""Lines of a trace, as `trace_pipe` gives them.

The form is that of the kernel's `print fmt` of these events (include/trace/events/block.h), which
grew: the priority (`be,0,4`) came late, `(tgid)` and the column of flags are options.

    dd-5634    [000] ..... 36618.602386: block_rq_issue: 254,0 RA 16384 () 29947752 + 32 be,0,4 [dd]
    dd-5634    [001] ..s.. 36618.602411: block_rq_complete: 254,0 RA () 29947752 + 32 be,0,4 [0]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

LOST = "lost"
_MOST_WORDS = 4096
_LINE = re.compile(
    rb"^ *(.{1,16}?)-(\d+) +(?:\( *[-\d]+\) +)?\[\d+\] +(?:\S+ +)?(\d+\.\d{6}): "
    rb"block_rq_(insert|issue|complete): "
    rb"(\d+,\d+) (\S+) (?:\d+ )?\([0-9a-f ]*\) (\d+) \+ (\d+) |^CPU:\d+ \[LOST (\d+) EVENTS\]",
    re.M,
)
# Of `rwbs` (blk_fill_rwbs in kernel/trace/blktrace.c) the first letter, without a leading F, which
# means that the caches are flushed before; a request that only flushes has nothing else.
_OPERATIONS = {"R": "read", "W": "write", "D": "discard", "F": "flush", "": "flush"}


class Event(NamedTuple):
    """One line. `kind` is "insert", "issue", "complete", or `LOST`, which has nothing else.

    `device` is "major,minor"; `operation` one of "read", "write", "discard", "flush", or "" for
    what is none of them. Times are microseconds, as exact as the kernel prints them; sectors have
    512 bytes.
    """

    kind: str
    time_us: int = 0
    device: str = ""
    operation: str = ""
    sector: int = 0
    sectors: int = 0
    tid: int = 0
    name: str = ""


class Lines:
    """Turns text that comes in pieces into events."""

    def __init__(self) -> None:
        self._rest = b""
        self._words = _Words()  # that come again and again
        self._operations = _Operations()

    def events(self, piece: bytes) -> Iterator[Event]:
        """Events of all lines that are whole by now; other lines are passed over."""
        text = self._rest + piece
        end = text.rfind(b"\n") + 1
        self._rest = text[end:]
        words, operations = self._words, self._operations
        for match in _LINE.finditer(text, 0, end):
            name, tid, when, kind, device, rwbs, sector, sectors, lost = match.groups()
            if lost is not None:
                yield Event(LOST)
                continue
            yield Event(
                words[kind],
                int(when.replace(b".", b"")),
                words[device],
                operations[rwbs],
                int(sector),
                int(sectors),
                int(tid),
                words[name],
            )


class _Words(dict[bytes, str]):
    """Texts of short words, each decoded once."""

    def __missing__(self, raw: bytes) -> str:
        if len(self) > _MOST_WORDS:
            self.clear()
        text = self[raw] = self._of(raw.decode("utf-8", "replace"))
        return text

    def _of(self, text: str) -> str:
        return text


class _Operations(_Words):
    def _of(self, text: str) -> str:
        return operation_of(text)


def operation_of(rwbs: str) -> str:
    """What `rwbs` asks for: "read", "write", "discard", "flush", or "" for none of them."""
    first = rwbs[1:2] if rwbs[:1] == "F" else rwbs[:1]
    return _OPERATIONS.get(first, "")
