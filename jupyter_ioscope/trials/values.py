"""A digest of what a sample says, whatever holds it: list or tensor, wide numbers or narrow ones.

Two samples with one such digest hold the same names, numbers and texts in the same order. Numbers
with a fraction are compared as float32, which is what most loops compute with.
"""

from __future__ import annotations

import hashlib
from typing import Any

from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials.samples import leaves

_WHOLE, _REAL, _OTHER = b"|int:", b"|float:", b"|other:"


def values_digest(value: Any) -> str:
    """The digest of a sample's values; lists and arrays of numbers count by their numbers."""
    into = _Digest()
    into.add(value)
    return into.hexdigest()


class _Digest:
    def __init__(self) -> None:
        self._hashed = hashlib.blake2b(digest_size=16)
        self._kind = b""

    def hexdigest(self) -> str:
        return self._hashed.hexdigest()

    def add(self, value: Any) -> None:
        table = loaded("pyarrow")
        if table is not None and isinstance(value, (table.Table, table.RecordBatch)):
            value = value.to_pydict()
        if isinstance(value, dict):
            for key, inner in value.items():
                self._put(_OTHER, repr(key).encode(errors="replace"))
                self.add(inner)
        elif isinstance(value, (list, tuple)):
            self._list(value)
        else:
            self._leaf(value)

    def _list(self, value: Any) -> None:
        numpy, kinds = loaded("numpy"), set(map(type, value))
        if numpy is not None and kinds in ({int}, {float}):
            self._array(numpy.array(value))
            return
        for inner in value:
            self.add(inner)

    def _leaf(self, value: Any) -> None:
        numpy, torch = loaded("numpy"), loaded("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            plain = value.layout == torch.strided and value.dtype != torch.bfloat16
            value = value.detach().cpu().numpy() if plain else value
        if numpy is not None:
            if type(value) in (int, float):
                value = numpy.asarray(value)
            if isinstance(value, (numpy.ndarray, numpy.generic)):
                self._array(numpy.asarray(value))
                return
        for leaf in leaves(value):
            self._put(_OTHER, leaf.data)

    def _array(self, array: Any) -> None:
        kind = array.dtype.kind
        if kind in "iuf":
            self._numbers(array)
        elif kind in "bUS" or (kind == "O" and array.ndim):
            for one in array.reshape(-1).tolist():
                for leaf in leaves(one):
                    self._put(_OTHER, leaf.data)
        else:
            for leaf in leaves(array):
                self._put(_OTHER, leaf.data)

    def _numbers(self, array: Any) -> None:
        whole = array.dtype.kind in "iu"
        narrow = array.astype("int64" if whole else "float32")
        self._put(_WHOLE if whole else _REAL, narrow.tobytes())

    def _put(self, kind: bytes, data: bytes) -> None:
        # Numbers of one kind that follow each other are one run, however they are held.
        if kind != self._kind or kind == _OTHER:
            self._hashed.update(kind)
        self._kind = kind
        self._hashed.update(data)
