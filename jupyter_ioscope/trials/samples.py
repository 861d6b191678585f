"""Turns batches into samples that can be compared: their form, a digest, and their numbers."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator
from typing import Any, NamedTuple

from jupyter_ioscope.optional import loaded

_MOST_LEAVES = 10_000


class Leaf(NamedTuple):
    """One value inside a sample. `data` is what a digest is made of; `array` holds its numbers,
    ready for a difference (a numpy array), or None when a difference has no meaning."""

    path: str
    form: str  # "tensor float32 3x128x128", "str", ...
    data: bytes
    array: Any


class Sample(NamedTuple):
    form: str  # forms of all leaves
    digest: str  # of everything
    exact: str  # of the values for which there is no "close": text, labels, objects
    numbers: list[tuple[str, Any]]  # (path, array) of the leaves with numbers
    size_bytes: int


def sample_of(value: Any) -> Sample:
    """Digest of a sample's whole content; two samples have one digest only if all bytes agree."""
    hashed, exact = hashlib.blake2b(digest_size=16), hashlib.blake2b(digest_size=16)
    forms, numbers, size = [], [], 0
    for number, leaf in enumerate(leaves(value)):
        if number >= _MOST_LEAVES:
            break
        forms.append(f"{leaf.path}: {leaf.form}" if leaf.path else leaf.form)
        hashed.update(f"{leaf.path}|{leaf.form}|".encode(errors="replace"))
        hashed.update(leaf.data)
        if leaf.array is None:
            exact.update(leaf.data)
        size += len(leaf.data)
        if leaf.array is not None:
            numbers.append((leaf.path, leaf.array))
    return Sample("; ".join(forms), hashed.hexdigest(), exact.hexdigest(), numbers, size)


def leaves(value: Any, path: str = "") -> Iterator[Leaf]:
    """The values at the ends of nested dicts, lists and tuples, in a fixed order."""
    if isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], f"{path}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from leaves(item, f"{path}[{number}]")
    else:
        yield _leaf(value, path)


def _leaf(value: Any, path: str) -> Leaf:
    torch, numpy, image = loaded("torch"), loaded("numpy"), loaded("PIL.Image")
    if torch is not None and isinstance(value, torch.Tensor):
        return _tensor(value, path, torch)
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        return _array(numpy.asarray(value), path, "array")
    if image is not None and isinstance(value, image.Image):
        array = numpy.asarray(value) if numpy is not None else None
        form = f"image {value.mode} {value.size[0]}x{value.size[1]}"
        return Leaf(path, form, value.tobytes(), array)
    arrow = loaded("pyarrow")
    if arrow is not None and isinstance(value, (arrow.Table, arrow.RecordBatch)):
        # Pickling a slice of a table would write the whole table.
        form = _form("table", ", ".join(value.column_names), (value.num_rows,))
        return Leaf(path, form, repr(value.to_pydict()).encode(errors="replace"), None)
    if isinstance(value, (bytes, bytearray)):
        return Leaf(path, f"bytes of length {len(value)}", bytes(value), None)
    if isinstance(value, (str, bool, int, type(None))):
        return Leaf(path, type(value).__name__, repr(value).encode(errors="replace"), None)
    if isinstance(value, (float, complex)):
        array = numpy.asarray(value) if numpy is not None else None
        return Leaf(path, type(value).__name__, repr(value).encode(), array)
    return Leaf(path, type(value).__name__, _object(value), None)


def _tensor(value: Any, path: str, torch: Any) -> Leaf:
    plain = value.detach()
    if plain.layout != torch.strided:
        plain = plain.to_dense()
    plain = plain.cpu().contiguous()
    name = str(value.dtype).removeprefix("torch.")
    if plain.dtype in (torch.bfloat16,) or name.startswith("float8"):
        plain = plain.float()  # exact, and numpy has no such type
    leaf = _array(plain.numpy(), path, "tensor")
    return leaf._replace(form=_form("tensor", name, tuple(value.shape)))


def _array(value: Any, path: str, kind: str) -> Leaf:
    form = _form(kind, str(value.dtype), value.shape)
    if value.dtype.hasobject:
        return Leaf(path, form, _object(value.tolist()), None)
    # Wider integers are labels, token ids and counts: one off is another value, not a close one.
    near = value.dtype.kind in "fc" or value.dtype in ("uint8", "int8")
    array = value if near else None
    return Leaf(path, form, value.tobytes(), array)


def _form(kind: str, dtype: str, shape: tuple[int, ...]) -> str:
    size = "x".join(str(length) for length in shape)
    return f"{kind} {dtype} {size}".rstrip()


def _object(value: Any) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception:
        return type(value).__qualname__.encode()


def split(batch: Any, count: int) -> list[Any] | None:
    """The `count` samples of a collated batch, or None when it is not built sample by sample.

    A tensor or array splits along its first dimension; a list of `count` plain values or images is
    one value a sample; other lists, tuples and dicts hold fields that must each split.
    """
    arrow = loaded("pyarrow")
    if arrow is not None and isinstance(batch, (arrow.Table, arrow.RecordBatch)):
        whole = batch.num_rows == count
        return [batch.slice(i, 1) for i in range(count)] if whole else None
    if hasattr(batch, "shape") and hasattr(batch, "__getitem__"):
        whole = len(batch.shape) >= 1 and batch.shape[0] == count
        return [batch[i] for i in range(count)] if whole else None
    if isinstance(batch, dict):
        fields = [split(value, count) for value in batch.values()]
        rows = _rows(fields, count)
        return rows and [dict(zip(batch, row, strict=True)) for row in rows]
    if isinstance(batch, (list, tuple)):
        if len(batch) == count and not _is_fields(batch, count):
            return list(batch)
        return _rows([split(value, count) for value in batch], count)
    return None


def _is_fields(batch: Any, count: int) -> bool:
    """Whether a list as long as the batch holds fields (each of which splits) or samples."""
    return all(split(value, count) is not None for value in batch)


def _rows(fields: list[Any], count: int) -> list[Any] | None:
    if not fields or any(field is None for field in fields):
        return None
    return [tuple(field[i] for field in fields) for i in range(count)]
