"""Files whose pages are not in the page cache, and the proof of it."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable
from pathlib import Path

PAGE_BYTES = mmap.PAGESIZE


def write_through(path: Path, content: bytes) -> None:
    """Write a file as far as the device: dirty pages cannot be dropped."""
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def evict(paths: Iterable[Path]) -> None:
    """Drop the pages of files from the page cache. Pages that a living process has mapped stay."""
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


def resident_fraction(path: Path) -> float:
    """Part of a file's pages that the page cache holds (mincore over a map that is never read).

    Raises:
        OSError: mincore is refused: the file is neither the caller's own nor writable.
    """
    size = path.stat().st_size
    if not size:
        return 0.0
    pages = -(-size // PAGE_BYTES)
    held = (ctypes.c_ubyte * pages)()
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    numbers = (ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    library.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *numbers)
    library.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    file = os.open(path, os.O_RDONLY)
    try:
        at = library.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file, 0)
    finally:
        os.close(file)
    if at == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), f"mmap of {path} failed")
    try:
        if library.mincore(at, size, held):
            raise OSError(ctypes.get_errno(), f"mincore of {path} failed")
    finally:
        library.munmap(at, size)
    return sum(byte & 1 for byte in held) / pages
