"""Key -> bytes in shared memory: least recently used out first, within a fixed size."""

from __future__ import annotations

import os
import time
from hashlib import blake2b
from typing import Any, NamedTuple

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.trials.sample_cache import _layout as lay
from jupyter_ioscope.trials.sample_cache._layout import Arrays, Sizes, changing, sizes_for
from jupyter_ioscope.trials.sample_cache._memory import SharedMemory, from_parent
from jupyter_ioscope.trials.sample_cache._order import oldest, push

_NEVER_NS = 1 << 62
_REFORMATS = 4  # how often the division may follow entries that are larger than expected
_TOO_MANY_BLOCKS = 512  # an entry of more blocks than this was not what the division was made for


class CacheStats(NamedTuple):
    """What a cache did so far, all processes together. A process that is killed takes at most the
    counts of its last call with it. Sizes are in bytes."""

    hits: int
    misses: int
    stored: int
    evicted: int
    expired: int
    too_large: int
    unstorable: int
    repairs: int
    entries: int
    used_bytes: int
    size_bytes: int
    limit_bytes: int

    @property
    def hit_fraction(self) -> float:
        """Hits of all look-ups, 0 to 1; 0 before the first."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else 0.0


class SampleStore:
    """Shared by every process that forks from this one, and by spawned workers it is sent to.

    `limit_bytes` bounds the whole of it: samples, index and counters. Memory is taken as it fills.
    An entry older than `ttl_s` is a miss.

    Raises:
        InputError: the limit is below 64 KiB, or this system cannot share files without a name.
    """

    def __init__(self, limit_bytes: int, ttl_s: float | None = None) -> None:
        if limit_bytes < lay.SMALLEST_BYTES:
            raise InputError(f"limit_bytes must be at least {lay.SMALLEST_BYTES}")
        self._attach(SharedMemory(limit_bytes), _NEVER_NS if ttl_s is None else int(ttl_s * 1e9))

    def _attach(self, memory: SharedMemory, ttl_ns: int) -> None:
        self._memory, self._ttl_ns = memory, ttl_ns
        fixed = memoryview(memory.map)[: lay.FIXED_BYTES].cast("Q")
        self._header, self._counters = fixed[: lay.HEADER], fixed[lay.HEADER :]
        self._fixed = fixed
        self._arrays: Arrays | None = None
        self._made = 0  # value of STATE for which `_arrays` are the views
        self._pid = self._row = -1

    def __reduce__(self) -> Any:
        handle = self._memory.for_worker()
        if handle is None:
            # A copy for anything but a worker has nobody to share with: it starts empty.
            return _empty, (self._memory.size_bytes, self._ttl_ns)
        return _attached, (self._memory.size_bytes, handle, self._ttl_ns)

    # -- what callers do

    def get(self, key: int | bytes) -> bytearray | None:
        """The bytes stored under `key`, in memory of the caller's own."""
        low, high = _halves(key)
        row = self._own_row()
        with self._memory.locked(exclusive=False):
            data, outcome = self._find_copy(low, high)
            broken = self._header[lay.DIRTY]
        if broken:
            with self._memory.locked(exclusive=True):
                self._repair()
        self._counters[row + outcome] += 1
        if outcome == lay.EXPIRED:
            self._counters[row + lay.MISSES] += 1
        return data

    def put(self, key: int | bytes, parts: list[Any]) -> bool:
        """Store the joined `parts` (bytes-like); False when they are larger than all there is."""
        low, high = _halves(key)
        length = sum(len(part) for part in parts)
        row = self._own_row()
        with self._memory.locked(exclusive=True):
            self._repair()
            arrays = self._divided_for(length)
            kept = arrays is not None and self._write(arrays, low, high, length, parts)
        self._counters[row + (lay.STORED if kept else lay.TOO_LARGE)] += 1
        return kept

    def note_unstorable(self) -> None:
        self._counters[self._own_row() + lay.UNSTORABLE] += 1

    def clear(self) -> None:
        """Forget all entries; counters stay."""
        with self._memory.locked(exclusive=True):
            self._format(None)

    def stats(self) -> CacheStats:
        header = self._header
        with self._memory.locked(exclusive=True):
            self._repair()
            arrays = self._views()
            taken = lay.FIXED_BYTES
            if arrays is not None:
                taken = arrays.sizes.places["blocks"][0]
                taken += header[lay.FRESH_BLOCK] * arrays.sizes.block_bytes
            columns = [
                sum(self._counters[column :: lay.COLUMNS].tolist()) for column in range(lay.COLUMNS)
            ]
            return CacheStats(
                hits=columns[lay.HITS],
                misses=columns[lay.MISSES],
                stored=columns[lay.STORED],
                evicted=header[lay.EVICTED],
                expired=columns[lay.EXPIRED],
                too_large=columns[lay.TOO_LARGE],
                unstorable=columns[lay.UNSTORABLE],
                repairs=header[lay.REPAIRS],
                entries=header[lay.LIVE],
                used_bytes=header[lay.USED_BYTES],
                size_bytes=taken,
                limit_bytes=self._memory.size_bytes,
            )

    def close(self) -> None:
        """Give this process's view of the memory back."""
        if self._arrays is not None:
            self._arrays.release()
        for view in (self._header, self._counters, self._fixed):
            view.release()
        self._memory.close()

    # -- the division of the memory

    def _views(self) -> Arrays | None:
        """The arrays as the header says they lie; None before the first entry came."""
        state = self._header[lay.STATE]
        if state == self._made:
            return self._arrays
        if self._arrays is not None:
            self._arrays.release()
        fields = (lay.BLOCK_BYTES, lay.BLOCKS, lay.ENTRIES, lay.BUCKETS)
        sizes = Sizes(*(int(self._header[field]) for field in fields))
        self._arrays = Arrays(self._memory.map, sizes) if sizes.blocks else None
        self._made = state
        return self._arrays

    def _divided_for(self, length: int) -> Arrays | None:
        """The arrays, made or made anew when `length` shows that they are of the wrong kind."""
        arrays = self._views()
        if arrays is None:
            self._format(sizes_for(self._memory.size_bytes, length))
            return self._views()
        blocks = -(-length // arrays.sizes.block_bytes)
        again = self._header[lay.REFORMATS] < _REFORMATS and length < self._memory.size_bytes // 2
        if again and blocks > _TOO_MANY_BLOCKS:
            self._header[lay.REFORMATS] += 1
            self._format(sizes_for(self._memory.size_bytes, length))
            return self._views()
        return arrays

    def _format(self, sizes: Sizes | None) -> None:
        """Empty, divided as `sizes` say (None: as it is)."""
        header = self._header
        with changing(header):
            if sizes is not None:
                header[lay.BLOCK_BYTES], header[lay.BLOCKS] = sizes.block_bytes, sizes.blocks
                header[lay.ENTRIES], header[lay.BUCKETS] = sizes.entries, sizes.buckets
                header[lay.STATE] += 1
            for field in (
                lay.LIVE, lay.USED_BLOCKS, lay.USED_BYTES, lay.FRESH_BLOCK, lay.FREE_BLOCK,
                lay.FRESH_ENTRY, lay.FREE_ENTRY, lay.HEAP,
            ):  # fmt: skip
                header[field] = 0
            arrays = self._views()
            if arrays is not None:
                empty = memoryview(bytes(4 * arrays.sizes.buckets)).cast("I")
                arrays.buckets[:] = empty

    def _repair(self) -> None:
        """A process died while it changed something: nothing can be trusted, so all is dropped."""
        if self._header[lay.DIRTY]:
            sizes = (lay.BLOCK_BYTES, lay.BLOCKS, lay.ENTRIES, lay.BUCKETS)
            found = Sizes(*(int(self._header[field]) for field in sizes))
            whole = found.blocks and found.size_bytes <= self._memory.size_bytes
            # Half-written sizes are as untrusted as the rest.
            expected = found.block_bytes * lay.BLOCKS_AN_ENTRY
            again = sizes_for(self._memory.size_bytes, expected) if whole else None
            if again is None:
                for field in sizes:
                    self._header[field] = 0
                self._header[lay.STATE] += 1
            self._header[lay.REPAIRS] += 1
            self._format(again)

    # -- entries; the lock is held

    def _find_copy(self, low: int, high: int) -> tuple[bytearray | None, int]:
        if self._header[lay.DIRTY]:
            return None, lay.MISSES
        arrays = self._views()
        entry = self._find(arrays, low, high) if arrays is not None else -1
        if arrays is None or entry < 0:
            return None, lay.MISSES
        now = time.monotonic_ns()
        if now - arrays.stored[entry] > self._ttl_ns:
            return None, lay.EXPIRED
        data = _copied(arrays, arrays.first[entry], arrays.length[entry])
        arrays.used[entry] = now
        return data, lay.HITS

    def _find(self, arrays: Arrays, low: int, high: int) -> int:
        entry = arrays.buckets[_bucket(arrays, low, high)] - 1
        while entry >= 0:
            if arrays.key_low[entry] == low and arrays.key_high[entry] == high:
                return int(entry)
            entry = arrays.chain[entry] - 1
        return -1

    def _write(self, arrays: Arrays, low: int, high: int, length: int, parts: list[Any]) -> bool:
        blocks = -(-length // arrays.sizes.block_bytes)
        if blocks > arrays.sizes.blocks:
            return False
        header = self._header
        with changing(header):
            entry = self._find(arrays, low, high)
            if entry >= 0:
                self._remove(arrays, entry)
            while (
                header[lay.USED_BLOCKS] + blocks > arrays.sizes.blocks
                or header[lay.LIVE] >= arrays.sizes.entries
            ):
                self._remove(arrays, oldest(header, arrays))
                header[lay.EVICTED] += 1
            entry = self._new_entry(arrays)
            arrays.first[entry] = self._fill(arrays, blocks, length, parts)
            now = time.monotonic_ns()
            arrays.key_low[entry], arrays.key_high[entry] = low, high
            arrays.length[entry], arrays.stored[entry] = length, now
            arrays.used[entry] = arrays.placed[entry] = now
            bucket = _bucket(arrays, low, high)
            arrays.chain[entry] = arrays.buckets[bucket]
            arrays.buckets[bucket] = entry + 1
            push(header, arrays, now, entry)
            header[lay.LIVE] += 1
            header[lay.USED_BLOCKS] += blocks
            header[lay.USED_BYTES] += length
        return True

    def _new_entry(self, arrays: Arrays) -> int:
        header = self._header
        if header[lay.FREE_ENTRY]:
            entry = header[lay.FREE_ENTRY] - 1
            header[lay.FREE_ENTRY] = arrays.chain[entry]
        else:
            entry = header[lay.FRESH_ENTRY]
            header[lay.FRESH_ENTRY] = entry + 1
        return int(entry)

    def _fill(self, arrays: Arrays, blocks: int, length: int, parts: list[Any]) -> int:
        """Copy `parts` into blocks that are free; returns the first block."""
        header, following, size = self._header, arrays.following, arrays.sizes.block_bytes
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        first = previous = -1
        at = 0
        while blocks:
            run = 1
            if header[lay.FREE_BLOCK]:
                block = header[lay.FREE_BLOCK] - 1
                header[lay.FREE_BLOCK] = following[block]
            else:  # never used before: all that is wanted lies in one piece
                block = header[lay.FRESH_BLOCK]
                run = min(blocks, arrays.sizes.blocks - block)
                header[lay.FRESH_BLOCK] = block + run
                for number in range(block, block + run - 1):
                    following[number] = number + 2
            amount = min(run * size, length - at)
            arrays.blocks[block * size : block * size + amount] = data[at : at + amount]
            at += amount
            if previous >= 0:
                following[previous] = block + 1
            else:
                first = block
            previous = block + run - 1
            blocks -= run
        return max(0, int(first))

    def _remove(self, arrays: Arrays, entry: int) -> None:
        header, following = self._header, arrays.following
        bucket = _bucket(arrays, arrays.key_low[entry], arrays.key_high[entry])
        at = arrays.buckets[bucket] - 1
        if at == entry:
            arrays.buckets[bucket] = arrays.chain[entry]
        else:
            while arrays.chain[at] - 1 != entry:
                at = arrays.chain[at] - 1
            arrays.chain[at] = arrays.chain[entry]
        length = arrays.length[entry]
        blocks = -(-length // arrays.sizes.block_bytes)
        if blocks:
            last = arrays.first[entry]
            for _ in range(blocks - 1):
                last = following[last] - 1
            following[last] = header[lay.FREE_BLOCK]
            header[lay.FREE_BLOCK] = arrays.first[entry] + 1
        arrays.placed[entry] = 0
        arrays.chain[entry] = header[lay.FREE_ENTRY]
        header[lay.FREE_ENTRY] = entry + 1
        header[lay.LIVE] -= 1
        header[lay.USED_BLOCKS] -= blocks
        header[lay.USED_BYTES] -= length

    def _own_row(self) -> int:
        """Where this process's counters begin."""
        if self._pid != os.getpid():
            with self._memory.locked(exclusive=True):
                number = self._header[lay.NEXT_ROW]
                self._header[lay.NEXT_ROW] = number + 1
            self._row = int(number % lay.PROCESSES) * lay.COLUMNS
            self._pid = os.getpid()
        return self._row


def _bucket(arrays: Arrays, low: int, high: int) -> int:
    # Fibonacci hashing: consecutive numbers spread over all buckets.
    mixed = ((low ^ high) * 0x9E37_79B9_7F4A_7C15) & 0xFFFF_FFFF_FFFF_FFFF
    return (mixed >> 20) & (arrays.sizes.buckets - 1)


def _halves(key: int | bytes) -> tuple[int, int]:
    if isinstance(key, int) and 0 <= key < 1 << 64:
        return key, 0
    text = key if isinstance(key, bytes) else str(key).encode()
    digest = blake2b(text, digest_size=16).digest()
    # Never 0 in the second half: that is where plain numbers are.
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little") | 1


def _copied(arrays: Arrays, block: int, length: int) -> bytearray:
    data = bytearray(length)
    size, blocks, following = arrays.sizes.block_bytes, arrays.blocks, arrays.following
    at = 0
    while at < length:
        start = block
        amount = size
        while at + amount < length and following[block] == block + 2:
            block += 1
            amount += size
        amount = min(amount, length - at)
        data[at : at + amount] = blocks[start * size : start * size + amount]
        at += amount
        block = following[block] - 1
    return data


def _attached(size_bytes: int, handle: Any, ttl_ns: int) -> SampleStore:
    store = SampleStore.__new__(SampleStore)
    store._attach(from_parent(size_bytes, handle), ttl_ns)
    return store


def _empty(size_bytes: int, ttl_ns: int) -> SampleStore:
    return SampleStore(size_bytes, None if ttl_ns == _NEVER_NS else ttl_ns / 1e9)
