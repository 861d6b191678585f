"""A dataset that tells the system which files a batch is about to read."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from typing import Any


class ReadAhead:
    """The samples of `dataset`, fetched batch by batch; before the first of a batch is made, the
    files of all of them are asked for, so that the device works on them side by side.

    `files` gives the paths of an index. Everything else is the dataset's own.
    """

    def __init__(self, dataset: Any, files: Any) -> None:
        self.dataset, self._files = dataset, files

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        return self.dataset[index]

    def __getitems__(self, indices: Sequence[Any]) -> list[Any]:
        for index in indices:
            for path in self._files(index):
                ask_for(path)
        many = getattr(self.dataset, "__getitems__", None)
        return list(many(indices)) if many else [self.dataset[index] for index in indices]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "dataset" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.dataset, name)


def ask_for(path: str) -> None:
    """Have the system read a file into its cache, without waiting for it."""
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_WILLNEED)
        finally:
            os.close(fd)


class FilesOfAttribute:
    """Paths out of a list that the dataset has: `attribute[index]`, or its element `place`."""

    def __init__(self, dataset: Any, attribute: str, place: int | str | None) -> None:
        self.dataset, self.attribute, self.place = dataset, attribute, place

    def __call__(self, index: Any) -> list[str]:
        row = getattr(self.dataset, self.attribute)[index]
        return [os.fspath(row if self.place is None else row[self.place])]


class FilesOfMap:
    """Paths by index, out of a file that was written when every sample was looked at."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._known: dict[str, list[str]] | None = None

    def __call__(self, index: Any) -> list[str]:
        if self._known is None:
            with open(self._path) as file:
                self._known = json.load(file)
        return self._known.get(repr(index), [])


def attribute_with(dataset: Any, seen: dict[Any, list[str]]) -> tuple[str, int | str | None] | None:
    """Which attribute of the dataset holds the path that each index in `seen` opened, found by
    its values: (attribute, place in its rows)."""
    for name, value in list(getattr(dataset, "__dict__", {}).items()):
        if isinstance(value, (list, tuple)) or type(value).__module__.startswith("numpy"):
            for place in (None, 0, 1):
                if all(_at(value, index, place) in paths for index, paths in seen.items()):
                    return name, place
    return None


def _at(rows: Any, index: Any, place: int | None) -> str:
    try:
        row = rows[index]
        return str(os.path.abspath(os.fspath(row if place is None else row[place])))
    except (TypeError, IndexError, KeyError, ValueError):
        return ""
