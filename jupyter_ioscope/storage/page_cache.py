"""Whether a file is in the page cache, asked of the kernel, and dropping it from there.

Three ways to ask, best first: cachestat(2) counts, mincore(2) tells page by page, and a read that
may not wait (preadv2(2), RWF_NOWAIT) finds a page or does not. The kernel answers the first two
only to those who own a file or may write to it; to others mincore says that every page is there.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import random
import sys
from typing import Any

_SYS_CACHESTAT = 451  # Linux 6.5 and newer, the same number on every architecture
# Above this share a read after an eviction is not counted as one from the device.
PROVEN_FRACTION = 0.01
# Pages to look at one by one: none of so many is there by chance in one case of 20 where 1 % of
# the file is (0.99 ** 300).
LOOKED_AT = 300
# mincore takes a byte for each page: so much of a file at once, and so often at most.
_PIECE, _PIECES = 1 << 30, 64
_LOW_BIT = bytes(value & 1 for value in range(256))


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


def resident(fd: int, size: int, looks: int = LOOKED_AT) -> tuple[float, str]:
    """(share of the file's pages in the page cache, how it was asked); (-1, "") where unknown.

    At most `looks` pages are looked at where the kernel does not count for this user.
    """
    if size <= 0 or sys.platform != "linux":
        return -1.0, ""
    libc = ctypes.CDLL(None, use_errno=True)
    count = _cachestat(libc, fd)
    if count is not None:
        return min(1.0, count / -(-size // mmap.PAGESIZE)), "cachestat"
    share = _mincore(libc, fd, size)
    if share is not None and (share < 1 or _is_ours(fd)):
        return share, "mincore"
    share = _looked_at(fd, size, looks)
    return (-1.0, "") if share is None else (share, "preadv2")


def _cachestat(libc: Any, fd: int) -> int | None:
    whole, found = _Range(0, 0), _CacheStat()  # length 0: to the end of the file
    if libc.syscall(_SYS_CACHESTAT, fd, ctypes.byref(whole), ctypes.byref(found), 0) != 0:
        return None
    return int(found.cache)


def _mincore(libc: Any, fd: int, size: int) -> float | None:
    """The share of a file, or of pieces from all over a very large one."""
    begins = range(0, size, _PIECE)
    there = pages = 0
    for begin in begins[:: -(-len(begins) // _PIECES)]:
        found = _mincore_piece(libc, fd, begin, min(_PIECE, size - begin))
        if found is None:
            return None
        there += found.translate(_LOW_BIT).count(1)
        pages += len(found)
    return there / pages


def _mincore_piece(libc: Any, fd: int, begin: int, size: int) -> bytes | None:
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    address = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, begin)
    if address in (None, ctypes.c_void_p(-1).value):
        return None
    try:
        pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
        if libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), pages) != 0:
            return None
        return bytes(pages)
    finally:
        libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))


def _is_ours(fd: int) -> bool:
    """Whether the kernel tells this process the truth of a file (its can_do_mincore)."""
    if os.fstat(fd).st_uid == os.geteuid():
        return True
    with contextlib.suppress(OSError, NotImplementedError):
        return os.access(f"/proc/self/fd/{fd}", os.W_OK, effective_ids=True)
    return False


def _looked_at(fd: int, size: int, looks: int) -> float | None:
    """The share of some pages, drawn at random, that a read finds which may not wait.

    The kernel begins to read a page that is not there: it is waited for and dropped again, so that
    the file is as it was. None where reads always wait (FUSE, NFS).
    """
    pages = range(-(-size // mmap.PAGESIZE))
    # Its own generator: the user's random state is not ours to advance.
    chosen = random.Random(os.urandom(8)).sample(pages, min(looks, len(pages)))
    byte, missing = [bytearray(1)], []
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)  # only that page, not those behind it
        for page in chosen:
            try:
                os.preadv(fd, byte, page * mmap.PAGESIZE, os.RWF_NOWAIT)
            except BlockingIOError:
                missing.append(page * mmap.PAGESIZE)
        for at in missing:
            os.preadv(fd, byte, at)
            os.posix_fadvise(fd, at, mmap.PAGESIZE, os.POSIX_FADV_DONTNEED)
    except (OSError, AttributeError):
        return None
    finally:
        with contextlib.suppress(OSError, AttributeError):
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_NORMAL)
    return 1 - len(missing) / len(chosen)
