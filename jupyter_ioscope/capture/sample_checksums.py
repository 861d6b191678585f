"""Checksums of a few samples of a map dataset, to tell whether it makes them alike each time.

With shuffling no two batches are alike, but their samples may be. So samples are known by the index
that the sampler gave out: the same ones are looked at in every worker and in every epoch, without
any of them knowing of the others. A sample is a row of the joined batch; bytes are read where they
lie, and what has no rows is passed over.
"""

from __future__ import annotations

import ctypes
import sys
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

# One sample in eight is watched, at most two of a fetch and this many of a pass over the data: one
# takes 10 to 20 µs, so that fetches of four milliseconds and more take less than 1 % longer.
_EVERY = 8
_MOST_A_FETCH = 2
_MOST_A_PASS = 64
LEAST_FETCH_NS = 4_000_000
# Of a row: at most so many parts, and so many bytes of each, in three pieces.
_MOST_PARTS = 8
_PIECE_BYTES = 256
_WHOLE = ("int", "int64", "int32")  # what samplers give out, numpy's numbers too


class Note(NamedTuple):
    """One sample: its number, a checksum of its shapes, and one of its values."""

    sample: int
    shape: int
    values: int


class SampleChecksums:
    """Looks at samples of one loader in one process."""

    def __init__(self) -> None:
        self._left = _MOST_A_PASS

    def __call__(self, indices: Any, data: Any, fetch_ns: int) -> list[Note]:
        """Notes about some samples of a batch, by the indices it was made of."""
        if fetch_ns < LEAST_FETCH_NS or self._left <= 0 or not isinstance(indices, (list, tuple)):
            return []
        try:
            return self._notes(indices, data)
        except Exception:  # a batch of classes of the user's own may do anything when looked at
            self._left = 0
            return []

    def _notes(self, indices: Sequence[Any], data: Any) -> list[Note]:
        found = []
        for row, index in enumerate(indices):
            if type(index).__name__ in _WHOLE and int(index) % _EVERY == 0:
                note = note_of(int(index), data, row, len(indices))
                if note is None:
                    break
                found.append(note)
                if len(found) >= _MOST_A_FETCH:
                    break
        self._left -= len(found)
        return found

    def restart(self) -> None:
        """A new epoch: its samples are counted from 0 again."""
        self._left = _MOST_A_PASS


def note_of(index: int, data: Any, row: int, rows: int) -> Note | None:
    """The sample in a row of a batch of so many rows; None where the batch has no such rows."""
    shape = values = parts = 0
    todo: list[tuple[Any, bool]] = [(data, False)]  # and whether it is the sample's own already
    while todo and parts < _MOST_PARTS:
        item, own = todo.pop()
        if isinstance(item, dict):
            todo.extend((value, own) for value in reversed(list(item.values())[:_MOST_PARTS]))
        elif isinstance(item, (list, tuple)):
            if not own and len(item) == rows and not _are_fields(item, rows):
                todo.append((item[row], True))
            else:
                todo.extend((value, own) for value in reversed(item[:_MOST_PARTS]))
        else:
            head, raw = _bytes_of(item, row, 1 if own else rows)
            if head:
                parts += 1
                shape, values = zlib.crc32(head, shape), zlib.crc32(raw, values)
    return Note(index, shape, values) if parts else None


def compared(notes: Iterable[Note]) -> tuple[int, int]:
    """(pairs of one sample made twice, those that are alike). Each is compared with the first of
    its index and shape: padding makes one sample longer in one batch than in another."""
    first: dict[tuple[int, int], int] = {}
    pairs = alike = 0
    for note in notes:
        key = note.sample, note.shape
        if key in first:
            pairs += 1
            alike += first[key] == note.values
        else:
            first[key] = note.values
    return pairs, alike


def _are_fields(items: Sequence[Any], rows: int) -> bool:
    """Whether these are columns of a batch, and not its samples: as many rows in each."""
    return all(_rows_of(item) == rows for item in items)


def _rows_of(item: Any) -> int:
    if _memory(item) is not None:
        return int(item.shape[0]) if len(item.shape) else -1
    return len(item) if isinstance(item, (list, tuple)) else -1


def _bytes_of(item: Any, row: int, rows: int) -> tuple[bytes, bytes]:
    """(shape, some values) of a row of a tensor or array with so many rows, or of a value that is
    the sample's own (`rows` is 1 then); empty where there is none."""
    whole = _memory(item)
    if whole is not None:
        kind, start, size = whole
        if rows == 1:
            return f"{tuple(item.shape)}{kind}".encode(), _pieces(start, size)
        if _rows_of(item) != rows:
            return b"", b""
        head = f"{tuple(item.shape[1:])}{kind}".encode()
        return head, _pieces(start + row * (size // rows), size // rows)
    if rows > 1:
        return b"", b""
    if isinstance(item, str):
        return b"s", item[:_PIECE_BYTES].encode("utf-8", "replace")
    if isinstance(item, (bytes, bytearray)):
        return b"b", bytes(item[:_PIECE_BYTES])
    if isinstance(item, (bool, int, float)):
        return b"n", repr(item).encode()
    return b"", b""


def _memory(item: Any) -> tuple[str, int, int] | None:
    """(type of its numbers, address, bytes) of plain memory; None for anything else."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and type(item) is torch.Tensor:
        plain = item.device.type == "cpu" and item.layout is torch.strided and item.is_contiguous()
        size = item.numel() * item.element_size()
        return (str(item.dtype), item.data_ptr(), size) if plain and size else None
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and type(item) is numpy.ndarray:
        plain = item.flags.c_contiguous and not item.dtype.hasobject and item.nbytes
        return (str(item.dtype), item.ctypes.data, int(item.nbytes)) if plain else None
    return None


def _pieces(start: int, size: int) -> bytes:
    """The beginning, the middle and the end of so many bytes."""
    if size <= 3 * _PIECE_BYTES:
        return ctypes.string_at(start, size)
    last = size - _PIECE_BYTES
    places = (0, last // 2, last)
    return b"".join(ctypes.string_at(start + at, _PIECE_BYTES) for at in places)
