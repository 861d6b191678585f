"""Sizes of a few of the pictures that fetches opened, read from the files' headers.

Read after the loop, so that nothing is paid while the clock runs: at most a few files, the first
64 kB of each, and only as long as that takes no time worth mentioning.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Sequence

from jupyter_ioscope.model.observed import FileUse, ImageSize

_ENDINGS = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp")
_MOST_FILES = 16
_HEAD_BYTES = 1 << 16
_MOST_S = 0.1
_START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # ITU-T T.81, table B.1


def image_sizes(files: Sequence[FileUse]) -> tuple[ImageSize, ...]:
    """Sizes of up to 16 pictures, spread evenly over those that were opened in fetches."""
    paths = sorted(
        {
            row.path
            for row in files
            if row.phase == "fetch" and row.mode == "r" and row.path.lower().endswith(_ENDINGS)
        }
    )
    step = max(1, len(paths) // _MOST_FILES)
    until_s = time.monotonic() + _MOST_S
    found = []
    for path in paths[::step][:_MOST_FILES]:
        if time.monotonic() > until_s:
            break
        with contextlib.suppress(OSError):
            size = size_of(_head(path))
            if size is not None:
                found.append(ImageSize(path, *size))
    return tuple(found)


def _head(path: str) -> bytes:
    """The first bytes of a regular file: opening a pipe would wait for a writer."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    try:
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return os.read(descriptor, _HEAD_BYTES) if regular else b""
    finally:
        os.close(descriptor)


def size_of(head: bytes) -> tuple[int, int] | None:
    """(width, height) in pixels from the beginning of a picture's file; None for anything else."""
    try:
        if head.startswith(b"\xff\xd8"):
            return _jpeg(head)
        if head.startswith(b"\x89PNG\r\n\x1a\n"):
            return _big(head, 16, 4), _big(head, 20, 4)
        if head[:6] in (b"GIF87a", b"GIF89a"):
            return _little(head, 6, 2), _little(head, 8, 2)
        if head.startswith(b"BM"):
            return _little(head, 18, 4), abs(_little(head, 22, 4, signed=True))
        if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
            return _webp(head)
    except IndexError:
        pass
    return None


def _jpeg(head: bytes) -> tuple[int, int] | None:
    """From segment to segment up to the one that starts the frame."""
    at = 2
    while at + 9 < len(head):
        if head[at] != 0xFF:
            return None
        marker = head[at + 1]
        if marker == 0xFF:  # padding
            at += 1
        elif marker in _START_OF_FRAME:
            return _big(head, at + 7, 2), _big(head, at + 5, 2)
        else:
            at += 2 + _big(head, at + 2, 2)
    return None


def _webp(head: bytes) -> tuple[int, int] | None:
    kind = head[12:16]
    if kind == b"VP8 ":
        return _little(head, 26, 2) & 0x3FFF, _little(head, 28, 2) & 0x3FFF
    if kind == b"VP8L":
        bits = _little(head, 21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        return _little(head, 24, 3) + 1, _little(head, 27, 3) + 1
    return None


def _big(raw: bytes, at: int, size: int) -> int:
    if at + size > len(raw):
        raise IndexError(at)
    return int.from_bytes(raw[at : at + size], "big")


def _little(raw: bytes, at: int, size: int, signed: bool = False) -> int:
    if at + size > len(raw):
        raise IndexError(at)
    return int.from_bytes(raw[at : at + size], "little", signed=signed)
