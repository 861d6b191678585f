"""`read()` against `mmap` with and without madvise, in order and here and there, cold and warm."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import mmap
import os
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jupyter_ioscope.benches._bench import Arm, Bench, Found, Pass, Prepared
from jupyter_ioscope.benches._targets import file_of
from jupyter_ioscope.storage import filesystems, page_cache
from jupyter_ioscope.units import bytes_text, percent

_TAKES = "the path of a file of your data set"
_LEAST, _MOST = 256 << 10, 32 << 20
_BLOCK, _SMALL, _SMALLS = 1 << 20, 4096, 512
_POPULATE_READ = 22  # MADV_POPULATE_READ, Linux 5.14 (mman-common.h); Python has no name for it

# name -> (madvise before reading, whether the bytes are copied out)
_MAPS: dict[str, tuple[int | None, bool]] = {
    "mmap": (None, True),
    "mmap, MADV_SEQUENTIAL": (getattr(mmap, "MADV_SEQUENTIAL", None), True),
    "mmap, MADV_WILLNEED": (getattr(mmap, "MADV_WILLNEED", None), True),
    "mmap, MADV_POPULATE_READ": (_POPULATE_READ if sys.platform == "linux" else None, True),
    "mmap, no copy": (None, False),
}
_SCATTERED_MAPS: dict[str, tuple[int | None, bool]] = {
    "mmap": (None, True),
    "mmap, MADV_RANDOM": (getattr(mmap, "MADV_RANDOM", None), True),
}


def prepare(target: Any, folder: str) -> Prepared:
    path, whole = file_of(target, _TAKES, _LEAST)
    size = min(whole, _MOST)
    found = filesystems.of_path(path)
    cold = found.family != "memory" and sys.platform == "linux"
    arms: list[Arm] = []
    for state in ("cold", "warm") if cold else ("warm",):
        arms += _arms(path, whole, size, state == "cold")
    notes = [
        f"In order: requests of 1 MiB, over {bytes_text(size)} of {bytes_text(whole)}. Here and "
        f"there: requests of 4 KiB, at {_SMALLS} places.",
        "A mapped file that another program makes shorter kills this process (SIGBUS) when the "
        "lost part is touched; read() then only returns fewer bytes. Waits for mapped pages hold "
        "the interpreter lock: other threads of the process wait with them.",
        "'no copy' touches each page where it lies; all others hand over bytes objects.",
    ]
    if cold:
        notes.append(
            "Cold: evicted before every pass, and no more than "
            f"{percent(page_cache.PROVEN_FRACTION)} resident, as the kernel confirmed. A virtual "
            "disk may still be cached by its host."
        )
    else:
        notes.append(f"Warm only: {found.name} keeps its files in memory or says nothing of it.")

    def said(_found: Found) -> Sequence[str]:
        return notes

    return Prepared(f"{path} ({found.name})", tuple(arms), sentences=said, code=_code)


def _arms(path: str, whole: int, size: int, cold: bool) -> Iterator[Arm]:
    state = "cold" if cold else "warm"
    before = functools.partial(_evicted, path, whole) if cold else None
    order, there = f"{state}, in order", f"{state}, here and there"
    blocks = -(-size // _BLOCK)
    how: dict[str, Any] = {"items": blocks, "bytes": size, "group": order, "before": before}
    common = how | {"warm": not cold}
    yield Arm("read()", functools.partial(_read, path, size), **common)
    yield Arm("readinto()", functools.partial(_readinto, path, size), **common,
              look=functools.partial(_differs, path, size, "readinto()"),
              note="one buffer, used again")  # fmt: skip
    for name, (advice, copy) in _MAPS.items():
        if advice is not None or "MADV" not in name:
            yield Arm(name, functools.partial(_map, path, size, advice, copy), **common,
                      look=functools.partial(_differs, path, size, name))  # fmt: skip
    places = _places(whole)
    common |= {"items": len(places), "bytes": len(places) * _SMALL, "group": there}
    yield Arm("pread()", functools.partial(_pread, path, places), **common)
    for name, (advice, _) in _SCATTERED_MAPS.items():
        if advice is not None or "MADV" not in name:
            yield Arm(name, functools.partial(_map_places, path, places, advice), **common,
                      look=functools.partial(_places_differ, path, places, advice))  # fmt: skip


def _places(size: int) -> list[int]:
    draw = random.Random(size)
    pages = size // _SMALL
    return [n * _SMALL for n in draw.sample(range(pages), min(_SMALLS, pages))]


def _evicted(path: str, size: int) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        page_cache.evict(fd)
        share, _ = page_cache.resident(fd, size)
    finally:
        os.close(fd)
    if share < 0:
        return "the kernel does not say what its page cache holds"
    if share > page_cache.PROVEN_FRACTION:
        return f"{percent(share)} of the file stays in the page cache: another program maps it"
    return ""


def _read(path: str, size: int, take: Callable[[bytes], object] = len) -> Pass:
    def once() -> None:
        with open(path, "rb", buffering=0) as file:
            for _ in range(0, size, _BLOCK):
                take(file.read(_BLOCK))

    return once


def _readinto(path: str, size: int, take: Callable[[Any], object] = len) -> Pass:
    buffer = bytearray(_BLOCK)

    def once() -> None:
        with open(path, "rb", buffering=0) as file:
            for _ in range(0, size, _BLOCK):
                count = file.readinto(buffer) or 0
                take(memoryview(buffer)[:count])

    return once


def _map(path: str, size: int, advice: int | None, copy: bool,
         take: Callable[[Any], object] = len) -> Pass:  # fmt: skip
    def once() -> None:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ) as view:
            if advice is not None:
                view.madvise(advice)
            if copy:
                for at in range(0, size, _BLOCK):
                    take(view[at : at + _BLOCK])
            else:
                with memoryview(view) as whole:
                    bytes(whole[::_SMALL])  # one byte of each page
                    if take is not len:
                        take(whole)

    return once


def _pread(path: str, places: list[int], take: Callable[[bytes], object] = len) -> Pass:
    def once() -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            with contextlib.suppress(OSError, AttributeError):  # not on every system
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
            for at in places:
                take(os.pread(fd, _SMALL, at))
        finally:
            os.close(fd)

    return once


def _map_places(path: str, places: list[int], advice: int | None,
                take: Callable[[bytes], object] = len) -> Pass:  # fmt: skip
    def once() -> None:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
            if advice is not None:
                view.madvise(advice)
            for at in places:
                take(view[at : at + _SMALL])

    return once


def _differs(path: str, size: int, name: str) -> list[str]:
    mine, standard = hashlib.blake2b(), hashlib.blake2b()
    _read(path, size, standard.update)()
    if name == "readinto()":
        _readinto(path, size, mine.update)()
    else:
        advice, copy = _MAPS[name]
        _map(path, size, advice, copy, mine.update)()
    return [] if mine.digest() == standard.digest() else ["other bytes than read() gives"]


def _places_differ(path: str, places: list[int], advice: int | None) -> list[str]:
    mine, standard = hashlib.blake2b(), hashlib.blake2b()
    _pread(path, places, standard.update)()
    _map_places(path, places, advice, mine.update)()
    return [] if mine.digest() == standard.digest() else ["other bytes than pread() gives"]


def _code(arm: Arm) -> str:
    if not arm.name.startswith("mmap"):
        return ""
    advice = arm.name.partition(", ")[2]
    name = str(_POPULATE_READ) if "POPULATE" in advice else f"mmap.{advice}"
    line = f"\n    view.madvise({name})" if advice.startswith("MADV") else ""
    return (
        'with open(path, "rb") as file:\n'
        f"    view = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ){line}\n"
        "    data = view[start:stop]"
    )


BENCH = Bench("read", "read() against mmap", _TAKES, "request", prepare)
