"""Notes which columns of its rows a program reads, in a trial's child only."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from typing import Any


class Reads:
    """Columns that were read by name, and whether a row was ever taken as a whole."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.whole = False
        self._inside = threading.local()

    def install(self) -> None:
        """Patch `datasets.Dataset` for good: only for processes that end soon after."""
        import datasets

        kind = datasets.Dataset
        for name in ("__getitem__", "__getitems__", "__iter__", "iter"):
            setattr(kind, name, self._wrapped(getattr(kind, name)))

    def _wrapped(self, original: Any) -> Any:
        @functools.wraps(original)
        def called(dataset: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(self._inside, "on", False):
                return original(dataset, *args, **kwargs)  # the library asks itself
            if args and isinstance(args[0], str):
                self.names.add(args[0])
            self._inside.on = True
            try:
                result = original(dataset, *args, **kwargs)
            finally:
                self._inside.on = False
            return self._seen(result)

        return called

    def _seen(self, value: Any) -> Any:
        if type(value) is dict:
            return _row_class()(value, self)
        if type(value) is list:
            return [self._seen(inner) for inner in value]
        if isinstance(value, Iterator):
            return map(self._seen, value)
        return value


_row: Any = None


def _row_class() -> Any:
    global _row
    if _row is None:
        _row = _made()
    return _row


def _made() -> Any:
    class Row(dict[str, Any]):
        """A row that tells what is asked of it. Overriding __iter__ also keeps `dict(row)` and
        `{**row}` from copying it unseen."""

        def __init__(self, values: Any, reads: Reads) -> None:
            super().__init__(values)
            self._reads = reads

        def _all(self) -> None:
            self._reads.whole = True

        def __getitem__(self, key: str) -> Any:
            self._reads.names.add(key)
            return super().__getitem__(key)

        def get(self, key: str, default: Any = None) -> Any:
            self._reads.names.add(key)
            return super().get(key, default)

        def pop(self, key: str, *default: Any) -> Any:
            self._reads.names.add(key)
            return super().pop(key, *default)

        def __contains__(self, key: object) -> bool:
            if isinstance(key, str):
                self._reads.names.add(key)
            return super().__contains__(key)

    def taking_all(name: str) -> Any:
        original = getattr(dict, name)

        @functools.wraps(original)
        def called(row: Any, *args: Any, **kwargs: Any) -> Any:
            row._all()
            return original(row, *args, **kwargs)

        return called

    whole = ("__iter__", "keys", "items", "values", "copy", "__eq__", "__repr__", "__reversed__",
             "__or__", "popitem", "__len__")  # fmt: skip
    for name in whole:
        setattr(Row, name, taking_all(name))
    return Row
