"""Whether a file is in the page cache, asked of the kernel, and dropping it from there."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import sys
from typing import Any

_SYS_CACHESTAT = 451  # Linux 6.5 and newer, the same number on every architecture
# Above this share a read after an eviction is not counted as one from the device.
PROVEN_FRACTION = 0.01


class _Range(ctypes.Structure):
    _fields_ = (("off", ctypes.c_uint64), ("len", ctypes.c_uint64))


class _CacheStat(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in ("cache", "dirty", "writeback", "evicted", "recently_evicted")
    )


def evict(fd: int) -> None:
    """Write back, then drop the file's clean pages; those mapped by a living process stay."""
    with contextlib.suppress(OSError):
        os.fsync(fd)  # dirty pages cannot be dropped
    with contextlib.suppress(OSError, AttributeError):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def resident(fd: int, size: int) -> tuple[float, str]:
    """(share of the file's pages in the page cache, how it was asked); (-1, "") where unknown."""
    if size <= 0 or sys.platform != "linux":
        return -1.0, ""
    pages = -(-size // mmap.PAGESIZE)
    libc = ctypes.CDLL(None, use_errno=True)
    count, method = _cachestat(libc, fd), "cachestat"
    if count is None:
        count, method = _mincore(libc, fd, size), "mincore"
    return (-1.0, "") if count is None else (min(1.0, count / pages), method)


def _cachestat(libc: Any, fd: int) -> int | None:
    whole, found = _Range(0, 0), _CacheStat()  # length 0: to the end of the file
    if libc.syscall(_SYS_CACHESTAT, fd, ctypes.byref(whole), ctypes.byref(found), 0) != 0:
        return None
    return int(found.cache)


def _mincore(libc: Any, fd: int, size: int) -> int | None:
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    address = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        return None
    try:
        pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
        if libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), pages) != 0:
            return None
        return sum(page & 1 for page in pages)
    finally:
        libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))
