"""A checksum of a batch's first values: enough to see that two workers made the same batch.

Of a map dataset, where the sampler gives every index out once, a few checksums tell whether epochs
repeat the same batches. Nothing of the user's is touched: bytes are read where they lie, and what
is not plain memory is passed over.
"""

from __future__ import annotations

import ctypes
import sys
import zlib
from typing import Any

# The first fetches of a worker tell; later ones are looked at now and then.
_ALWAYS = 32
_EVERY = 16
# Batches of map datasets: fewer, and only where a fetch takes long enough to hide what they cost
# (50 to 100 µs).
_MAP_ALWAYS = 4
_MAP_EVERY = 64
_MAP_LEAST_FETCH_NS = 2_000_000
# At most so many leaves of a batch, and so many bytes of each, in three pieces: images often begin
# with a margin of one colour.
_MOST_LEAVES = 8
_MOST_ITEMS = 64
_PIECE_BYTES = 256


class DigestOfBatch:
    """Checksums of some batches of one worker, 0 for the others."""

    def __init__(self) -> None:
        self._seen = 0

    def __call__(self, data: Any) -> int:
        seen = self._seen
        self._seen = seen + 1
        return batch_digest(data) if seen < _ALWAYS or seen % _EVERY == 0 else 0

    def restart(self) -> None:
        """A new epoch: its fetches are counted from 0 again."""
        self._seen = 0


class DigestOfMapBatch:
    """The same for batches of a map dataset, of one worker or of the consumer. `seen` counts those
    that were passed over as well."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, data: Any, fetch_ns: int) -> int:
        seen = self.seen
        self.seen = seen + 1
        if fetch_ns < _MAP_LEAST_FETCH_NS or (seen >= _MAP_ALWAYS and seen % _MAP_EVERY):
            return 0
        return batch_digest(data)

    def restart(self) -> None:
        """A new epoch: its fetches are counted from 0 again."""
        self.seen = 0


def batch_digest(data: Any) -> int:
    """Two CRC-32 in one number, 0 where nothing could be read.

    The low 32 bits cover the first leaves of the batch, the high 31 bits only labels, ids and
    texts among them: these stay equal where every worker augments the same samples its own way.
    """
    every = labels = leaves = 0
    todo: list[Any] = [data]
    while todo and leaves < _MOST_LEAVES:
        item = todo.pop()
        if isinstance(item, dict):
            todo.extend(reversed(list(item.values())[:_MOST_ITEMS]))
        elif isinstance(item, (list, tuple)):
            todo.extend(reversed(item[:_MOST_ITEMS]))
        else:
            raw, is_label = _bytes_of(item)
            if raw:
                leaves += 1
                every = zlib.crc32(raw, every)
                labels = zlib.crc32(raw, labels) if is_label else labels
    return ((labels & 0x7FFFFFFF) << 32) | every


def labels_of(digest: int) -> int:
    """The part of a digest that covers labels, ids and texts only; 0 where there were none."""
    return digest >> 32


def _bytes_of(item: Any) -> tuple[bytes, bool]:
    """(some bytes that stand for a leaf, whether it is a label, an id or a text)."""
    if isinstance(item, str):
        return item[:_PIECE_BYTES].encode("utf-8", "replace"), True
    if isinstance(item, (bytes, bytearray)):
        return bytes(item[:_PIECE_BYTES]), True
    if isinstance(item, (int, float)):
        return repr(item).encode(), isinstance(item, int)
    torch: Any = sys.modules.get("torch")
    if torch is not None and type(item) is torch.Tensor:
        return _of_tensor(torch, item)
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and type(item) is numpy.ndarray:
        return _of_array(item)
    return b"", False


def _of_tensor(torch: Any, tensor: Any) -> tuple[bytes, bool]:
    """Read from its own memory: `numpy()` would import numpy, slicing would make tensors."""
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
        return b"", False
    count = tensor.numel()
    size = count * tensor.element_size()
    if not size or not tensor.is_contiguous():
        return b"", False
    start = tensor.data_ptr()
    kind = tensor.dtype
    head = f"{tuple(tensor.shape)}{kind}".encode()
    pieces = [ctypes.string_at(start + at, length) for at, length in _pieces(size)]
    return b"".join((head, *pieces)), _whole_numbers(str(kind))


def _of_array(array: Any) -> tuple[bytes, bool]:
    if array.dtype.hasobject or not array.flags.c_contiguous or not array.nbytes:
        return b"", False
    memory = memoryview(array).cast("B") if array.ndim else memoryview(array.tobytes())
    head = f"{array.shape}{array.dtype}".encode()
    pieces = [bytes(memory[at : at + length]) for at, length in _pieces(array.nbytes)]
    return b"".join((head, *pieces)), _whole_numbers(str(array.dtype))


def _pieces(size: int) -> list[tuple[int, int]]:
    """(offset, length) of the beginning, middle and end of `size` bytes."""
    if size <= 3 * _PIECE_BYTES:
        return [(0, size)]
    last = size - _PIECE_BYTES
    return [(0, _PIECE_BYTES), (last // 2, _PIECE_BYTES), (last, _PIECE_BYTES)]


def _whole_numbers(kind: str) -> bool:
    """Whether a dtype holds labels or ids; whole numbers of eight bits are pixels."""
    return "int" in kind and not kind.endswith("int8")
