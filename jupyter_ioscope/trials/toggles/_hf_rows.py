"""One read for all columns of the same rows, in a trial's child only."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RowsFirst:
    """`ds[column][rows]` for one column reads the others of `columns` too, and keeps them until
    other rows are asked for. The views `ds[column]` are made once: each copies all features."""

    columns: tuple[str, ...]

    def install(self) -> None:
        from datasets import arrow_dataset

        if hasattr(arrow_dataset.Column.__getitem__, "_ioscope_rows"):
            return  # a spawned worker's init may run in a process that has it already
        _Patch(self.columns, arrow_dataset).install()


class _Patch:
    def __init__(self, columns: tuple[str, ...], library: Any) -> None:
        self.columns, self.library = columns, library
        self.column_get = library.Column.__getitem__
        self.dataset_get = library.Dataset.__getitem__
        self.views: dict[str, Any] = {}  # column -> the view made last
        self.source: Any = None  # the dataset of `narrow`
        self.narrow: Any = None
        self.key: Any = None
        self.rows: dict[str, Any] = {}

    def install(self) -> None:
        @functools.wraps(self.column_get)
        def of_column(column: Any, key: Any) -> Any:
            return self.read(column, key)

        @functools.wraps(self.dataset_get)
        def of_dataset(dataset: Any, key: Any) -> Any:
            return self.view(dataset, key) if type(key) is str else self.dataset_get(dataset, key)

        of_column._ioscope_rows = True  # type: ignore[attr-defined]
        self.library.Column.__getitem__ = of_column
        self.library.Dataset.__getitem__ = of_dataset

    def view(self, dataset: Any, name: str) -> Any:
        view = self.views.get(name)
        if view is None or view.source is not dataset:
            view = self.dataset_get(dataset, name)
            self.views[name] = view
        return view

    def read(self, column: Any, key: Any) -> Any:
        name, wanted = column.column_name, list_key(key)
        if wanted is None or name not in self.columns or not self.prepared(column.source):
            return self.column_get(column, key)
        if self.key != wanted or name not in self.rows:
            self.key, self.rows = wanted, self.narrow[key]
        # Each value is given away once: two readers must not get one list to write to.
        return self.rows.pop(name)

    def prepared(self, source: Any) -> bool:
        """Whether `source` is a dataset with all of the columns and without a transform."""
        if source is self.source:
            return self.narrow is not None
        self.source, self.narrow, self.key, self.rows = source, None, None, {}
        kind = self.library.Dataset
        plain = isinstance(source, kind) and source._format_type != "custom"
        if plain and set(self.columns) <= set(source.format["columns"]):
            self.narrow = source.select_columns(list(self.columns))
        return self.narrow is not None


def list_key(key: Any) -> tuple[int, ...] | int | None:
    """A key that can be remembered: a row's number or a list of them."""
    if type(key) is int:
        return key
    return tuple(key) if type(key) is list and all(type(k) is int for k in key) else None
