"""Describes loops that iterate a Hugging Face dataset itself, without a torch DataLoader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials.spec import LoaderSpec, loaded_data


def direct_spec(value: Any, batch_size: int | None = None) -> LoaderSpec | None:
    """A spec that iterates `value` as `for row in value` does (or as `value.iter(batch_size)`);
    None when it is neither a Hugging Face dataset nor an object around one that can be iterated
    again and again. Nothing is iterated."""
    if loaded("torch.utils.data") is None and loaded("datasets") is None:
        return None
    if not _fits(value):
        return None
    loop = _loop_class()(value, batch_size)
    data = loaded_data()
    return LoaderSpec(
        loader_class=data.DataLoader,
        dataset=loop,
        batch_size=None,
        sampler=None,
        batch_sampler=None,
        collate_fn=as_it_is,
        iterable=True,
        direct=True,
        rows_in_batch=batch_size or rows_in_batch(value),
    )


def rows_in_batch(dataset: Any) -> int | None:
    """The n of a Hugging Face stream made by `.batch(n)`, whose items are batches; else None. Maps
    that come after it get a batch for a row."""
    kind = getattr(loaded("datasets"), "IterableDataset", None)
    if kind is None or not isinstance(dataset, kind):
        return None
    step: Any = getattr(dataset, "_ex_iterable", None)
    for _ in range(_CHAIN):
        function = getattr(step, "function", None)
        if function is not None and getattr(step, "batched", False):
            own = getattr(function, "func", function)
            size = getattr(step, "batch_size", None)
            named = getattr(own, "__name__", "") in _BATCHING
            library = str(getattr(own, "__module__", "")).startswith("datasets.")
            return size if named and library and isinstance(size, int) else None
        step = getattr(step, "ex_iterable", None)
    return None


# Functions of the library behind `.batch`, by version.
_BATCHING = ("batch_fn", "_batch_fn", "_batch_arrow_table")
_CHAIN = 16  # steps of a stream


def as_it_is(value: Any) -> Any:
    """The collate function of a loop that has none."""
    return value


def _fits(value: Any) -> bool:
    datasets = loaded("datasets")
    if datasets is None or isinstance(value, (type, list, tuple, dict, str, bytes)):
        return False
    if isinstance(value, (datasets.Dataset, datasets.IterableDataset)):
        return True
    if not hasattr(value, "__iter__") or hasattr(value, "__next__"):
        return False  # an iterator is used up by one pass
    own = getattr(value, "__dict__", None)
    kinds = (datasets.Dataset, datasets.IterableDataset)
    return isinstance(own, dict) and any(isinstance(inner, kinds) for inner in own.values())


def _loop_class() -> Any:
    global _Loop
    if _Loop is None:
        _Loop = _made()
    return _Loop


_Loop: Any = None


def _made() -> Any:
    base: Any = loaded_data().IterableDataset

    class Loop(base):  # type: ignore[misc]
        """What the user's loop does with the dataset: iterate it, in rows or in batches."""

        def __init__(self, looped: Any, batch_size: int | None) -> None:
            self.looped, self.batch_size = looped, batch_size

        def __iter__(self) -> Iterator[Any]:
            if self.batch_size is None:
                return iter(self.looped)
            rows: Iterator[Any] = self.looped.iter(batch_size=self.batch_size)
            return rows

        def __reduce__(self) -> Any:
            return _again, (self.looped, self.batch_size)

    return Loop


def _again(looped: Any, batch_size: int | None) -> Any:
    return _loop_class()(looped, batch_size)
