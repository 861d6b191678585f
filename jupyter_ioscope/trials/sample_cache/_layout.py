"""Where things lie in the cache's memory, and typed views of it.

Everything is in arrays of 4- or 8-byte numbers, written one number at a time:

    header     what the cache is made of and how full it is
    counters   one row a process, so that hits can be counted without the write lock
    buckets    hash -> first entry of its chain (entry number + 1; 0: empty)
    entries    nine arrays, one number an entry
    heap       (time, entry) of every entry, the least recently used first
    following  block -> next block of the same entry or next free block (number + 1)
    blocks     the samples' bytes
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

MAGIC = 0x1053_C0BE_CAC4_E001
PROCESSES = 128  # rows of counters; more processes than that share rows
BLOCKS_AN_ENTRY = 24
_ALIGN = 64

# Fields of the header, as places in an array of 8-byte numbers.
HEADER = 32
(
    STATE, DIRTY, BLOCK_BYTES, BLOCKS, ENTRIES, BUCKETS, LIVE, USED_BLOCKS, USED_BYTES,
    FRESH_BLOCK, FREE_BLOCK, FRESH_ENTRY, FREE_ENTRY, HEAP, NEXT_ROW, REFORMATS, REPAIRS, EVICTED,
) = range(18)  # fmt: skip
# Columns of a row of counters.
HITS, MISSES, EXPIRED, TOO_LARGE, STORED, UNSTORABLE, COLUMNS = 0, 1, 2, 3, 4, 5, 8


@dataclass(frozen=True)
class Sizes:
    """How a cache of a given size is divided for entries of an expected size."""

    block_bytes: int
    blocks: int
    entries: int
    buckets: int

    @property
    def places(self) -> dict[str, tuple[int, int, str]]:
        """Name -> (byte offset, count, type code)."""
        at, found = FIXED_BYTES, {}
        for name, count, code in (
            ("buckets", self.buckets, "I"),
            *((name, self.entries, code) for name, code in _ENTRY_ARRAYS),
            ("heap_time", 2 * self.entries, "Q"),
            ("heap_entry", 2 * self.entries, "I"),
            ("following", self.blocks, "I"),
        ):
            found[name] = (at, count, code)
            at = aligned(at + count * (8 if code == "Q" else 4))
        found["blocks"] = (at, self.blocks * self.block_bytes, "B")
        return found

    @property
    def size_bytes(self) -> int:
        at, count, _ = self.places["blocks"]
        return at + count


_ENTRY_ARRAYS = (
    ("key_low", "Q"),
    ("key_high", "Q"),
    ("length", "Q"),
    ("used", "Q"),  # last hit, CLOCK_MONOTONIC nanoseconds
    ("stored", "Q"),
    ("placed", "Q"),  # the time with which it is in the heap; 0: the entry is free
    ("first", "I"),  # first block
    ("chain", "I"),  # next entry in its bucket (entry number + 1), or next free entry
)


def aligned(number: int) -> int:
    return -(-number // _ALIGN) * _ALIGN


COUNTERS_AT = HEADER * 8
FIXED_BYTES = aligned(COUNTERS_AT + PROCESSES * COLUMNS * 8)
SMALLEST_BYTES = 64 * 1024


def sizes_for(limit_bytes: int, expected_bytes: int) -> Sizes:
    """The division for entries of about `expected_bytes` each, of `limit_bytes` in all.

    An entry of just that size fills its blocks but for 1 %; others lose half a block on average,
    which is 2 % of the expected size.
    """
    expected = max(64, expected_bytes)
    block = min(aligned(-(-expected // BLOCKS_AN_ENTRY)), aligned(max(1, limit_bytes // 64)))
    # A quarter more entries than expected ones, so that smaller ones do not run out of numbers.
    low, high = 1, max(1, limit_bytes // block)
    while low < high:  # the largest number of blocks whose arrays fit as well
        middle = (low + high + 1) // 2
        if _divided(middle, block, expected).size_bytes <= limit_bytes:
            low = middle
        else:
            high = middle - 1
    return _divided(low, block, expected)


def _divided(blocks: int, block: int, expected: int) -> Sizes:
    entries = max(16, blocks * block * 5 // (4 * expected))
    buckets = 16
    while buckets < entries:
        buckets *= 2
    return Sizes(block, blocks, entries, buckets)


class Arrays:
    """Typed views of a mapping. They must be released before it can be closed."""

    def __init__(self, memory: Any, sizes: Sizes) -> None:
        self.sizes = sizes
        self._views: list[memoryview] = []
        whole = memoryview(memory)
        for name, (at, count, code) in sizes.places.items():
            width = {"Q": 8, "I": 4, "B": 1}[code]
            view = whole[at : at + count * width].cast(code)  # type: ignore[call-overload]
            setattr(self, name, view)
            self._views.append(view)
        self._views.append(whole)

    buckets: memoryview
    key_low: memoryview
    key_high: memoryview
    length: memoryview
    used: memoryview
    stored: memoryview
    placed: memoryview
    first: memoryview
    chain: memoryview
    heap_time: memoryview
    heap_entry: memoryview
    following: memoryview
    blocks: memoryview

    def release(self) -> None:
        for view in self._views:
            view.release()
        self._views = []


@contextmanager
def changing(header: memoryview) -> Iterator[None]:
    """While this holds the arrays may contradict each other. A process that dies meanwhile leaves
    the mark behind; so does an exception, on purpose."""
    header[DIRTY] = 1
    yield
    header[DIRTY] = 0
