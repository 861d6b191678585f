"""What a dataset of `datasets` tells about itself: plain attributes, nothing read or decoded."""

from __future__ import annotations

import contextlib
import functools
import os
import types
from collections.abc import Callable, Iterator
from typing import Any

from jupyter_ioscope import optional

Facts = tuple[tuple[str, str], ...]

_NAMES = 8  # columns named under a fact
_CHAIN = 16  # steps of a stream
_FILES = 64  # whose sizes are looked up
_CHUNKS = 4_000  # arrays of a table whose sizes are added up
_LAYERS = 5  # Subset in ConcatDataset in ..., a function, what that closes over
_MOST_HELD = 500  # objects looked at
_DECODED = ("Image", "Audio", "Video", "Pdf", "Nifti", "Mesh")
_LISTS = ("nested_lists", "lists", "fixed_arrays")
_NUMBERS = ("int", "uint", "float", "bool")


def facts_of(dataset: Any) -> Facts:
    """(key, value) pairs about the Hugging Face dataset that `dataset` is, wraps or holds; () where
    there is none. Never raises: a broken dataset tells less.

    Keys: kind, shards, stream, shuffle_buffer (streams); rows, indices_mapping, in_memory,
    data_bytes, chunks, values_per_row, inner_lists_per_row, format_columns, batched_fetch
    (tables); format, columns, wrapped, and for each kind of column their names: decoded,
    nested_lists, lists, fixed_arrays, strings.
    """
    try:
        found = _behind(dataset)
    except Exception:  # a user's attribute may be anything
        return ()
    if found is None:
        return ()
    facts = {"kind": type(found).__name__}
    readers: tuple[tuple[str, Callable[[Any], Any]], ...] = (
        *(_STREAM if facts["kind"] == "IterableDataset" else _TABLE),
        *_BOTH,
    )
    for key, read in readers:
        try:
            value = read(found)
        except Exception:
            continue
        if value not in (None, ""):
            facts[key] = _text(value)
    facts["wrapped"] = _text(found is not dataset)
    return tuple(facts.items())


def _text(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)[:400]


def _kinds() -> tuple[type, ...]:
    arrow: Any = optional.loaded("datasets.arrow_dataset")
    stream: Any = optional.loaded("datasets.iterable_dataset")
    found = (getattr(arrow, "Dataset", None), getattr(stream, "IterableDataset", None))
    return tuple(kind for kind in found if isinstance(kind, type))


def _behind(dataset: Any) -> Any:
    """The nearest dataset of the library that the dataset is, holds, or reads its items from."""
    kinds = _kinds()
    if not kinds:
        return None
    layer, known = [dataset], {id(dataset)}
    for _ in range(_LAYERS + 1):
        below: list[Any] = []
        for value in layer:
            if isinstance(value, kinds):
                return value
            for item in _held_by(value):
                if id(item) not in known and len(known) < _MOST_HELD:
                    known.add(id(item))
                    below.append(item)
        layer = below
    return None


def _held_by(value: Any) -> Iterator[Any]:
    """What a dataset or a function may take items from: attributes, what its functions close over
    and which globals they name. Nothing of the user's is called."""
    if isinstance(value, types.MethodType):
        yield value.__self__
        value = value.__func__
    if isinstance(value, functools.partial):
        yield from (value.func, *value.args[:_CHAIN], *value.keywords.values())
    elif isinstance(value, types.FunctionType):
        for cell in (value.__closure__ or ())[:_CHAIN]:
            with contextlib.suppress(ValueError):  # not filled yet
                yield cell.cell_contents
        for name in value.__code__.co_names[:_CHAIN]:
            found = value.__globals__.get(name)
            if not isinstance(found, (type, types.ModuleType, types.BuiltinFunctionType)):
                yield found
    elif isinstance(value, (list, tuple)):
        yield from value[:1]
    elif not isinstance(value, (type, types.ModuleType)):
        held = getattr(value, "__dict__", None)
        if isinstance(held, dict):
            yield from list(held.values())[:_CHAIN]
            for name in ("__getitem__", "__getitems__", "__iter__"):
                method = vars(type(value)).get(name)
                if isinstance(method, types.FunctionType):
                    yield method


# -- tables -----------------------------------------------------------------------------------


def _data_bytes(dataset: Any) -> int | None:
    """Bytes of the table, all rows counted."""
    table = dataset.data
    if len(table.column_names) * max(1, len(table.column(0).chunks)) <= _CHUNKS:
        return int(table.nbytes)
    files = dataset.cache_files[:_FILES]
    return sum(os.path.getsize(row["filename"]) for row in files) if files else None


def _in_memory(dataset: Any) -> bool:
    """Whether no file of a cache is behind the table. That of an indices mapping does not count."""
    table: Any = optional.loaded("datasets.table")
    return not table.list_table_cache_files(dataset.data)


def _per_row(dataset: Any, *, inner: bool, kinds: tuple[str, ...]) -> int:
    """Values of a row (`inner`: lists inside its lists) in columns of these kinds that are read,
    by the first chunk of each. From offsets: no value is read."""
    table = dataset.data
    total = 0.0
    for name in dataset._format_columns or table.column_names:
        chunks = table.column(name).chunks
        if chunks and feature_kind(dataset.features[name]) in kinds:
            counts = _counts(chunks[0])
            total += sum(counts[:-1]) if inner else counts[-1]
    return round(total)


def _counts(array: Any) -> list[float]:
    """How many items a row holds at each depth of its lists: [rows, numbers] for [[1, 2], [3]]."""
    array = getattr(array, "storage", array)
    counts, each = [], 1.0
    for _ in range(_LAYERS + 1):
        offsets = getattr(array, "offsets", None)
        size = getattr(array.type, "list_size", None)
        if isinstance(size, int):
            each *= size
        elif offsets is not None and len(offsets) > 1:
            items = offsets[len(offsets) - 1].as_py() - offsets[0].as_py()
            each *= items / (len(offsets) - 1)
        else:
            break
        counts.append(each)
        array = array.values
    return counts or [1.0]


# -- streams ----------------------------------------------------------------------------------


def _steps(dataset: Any) -> Iterator[Any]:
    """The steps of a stream, the last one (what the loop asks) first."""
    step = getattr(dataset, "_ex_iterable", None)
    for _ in range(_CHAIN):
        if step is None:
            return
        yield step
        step = getattr(step, "ex_iterable", None)


def _stream(dataset: Any) -> str:
    names = (type(step).__name__.replace("ExamplesIterable", "") for step in _steps(dataset))
    return " < ".join(name or "Examples" for name in names)


def _shuffle_buffer(dataset: Any) -> int | None:
    sizes = (getattr(step, "buffer_size", None) for step in _steps(dataset))
    return next((size for size in sizes if isinstance(size, int)), None)


# -- both -------------------------------------------------------------------------------------


def _format(dataset: Any) -> str:
    given = getattr(dataset, "_format_type", None)
    config = getattr(dataset, "_formatting", None)
    given = given if config is None else getattr(config, "format_type", None)
    return str(given or "python")


def feature_kind(feature: Any) -> str:
    """The kind of a column: decoded, nested_lists, lists, fixed_arrays, strings or other."""
    name = type(feature).__name__
    if name in _DECODED:
        return "decoded" if getattr(feature, "decode", True) else "other"
    if name.startswith("Array") and name.endswith("D"):
        return "fixed_arrays"
    inner = _item_of(feature)
    if inner is not None:
        return _list_kind(inner)
    if isinstance(feature, dict):
        return "decoded" if any(feature_kind(item) == "decoded" for item in feature.values()) else (
            "other"
        )  # fmt: skip
    kind = str(getattr(feature, "dtype", ""))
    return "strings" if kind in ("string", "large_string", "binary", "large_binary") else "other"


def _item_of(feature: Any) -> Any:
    if type(feature).__name__ in ("List", "LargeList", "Sequence"):
        return feature.feature
    return feature[0] if isinstance(feature, list) and feature else None


def _list_kind(inner: Any) -> str:
    """Of lists: of lists of numbers, of numbers, or of something else."""
    if feature_kind(inner) == "decoded":
        return "decoded"
    deeper = inner
    while (item := _item_of(deeper)) is not None:
        deeper = item
    if not str(getattr(deeper, "dtype", "")).startswith(_NUMBERS):
        return "other"
    return "lists" if deeper is inner else "nested_lists"


def _of_kind(kind: str) -> Callable[[Any], str]:
    def names(dataset: Any) -> str:
        features = dataset.features or {}
        read = getattr(dataset, "_format_columns", None) or list(features)
        found = [str(name) for name in read if feature_kind(features[name]) == kind]
        return ", ".join(found[:_NAMES])

    return names


_BOTH: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("format", _format),
    ("columns", lambda dataset: len(dataset.features)),
    *(
        (kind, _of_kind(kind))
        for kind in ("decoded", "nested_lists", "lists", "fixed_arrays", "strings")
    ),
)
_TABLE: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("rows", lambda dataset: dataset.num_rows),
    ("indices_mapping", lambda dataset: dataset._indices is not None),
    ("in_memory", _in_memory),
    ("data_bytes", _data_bytes),
    ("chunks", lambda dataset: len(dataset.data.column(0).chunks)),
    ("values_per_row", lambda dataset: _per_row(dataset, inner=False, kinds=_LISTS)),
    ("inner_lists_per_row", lambda dataset: _per_row(dataset, inner=True, kinds=_LISTS[:1])),
    ("format_columns", lambda dataset: ", ".join(dataset._format_columns or [])),
    ("batched_fetch", lambda dataset: hasattr(type(dataset), "__getitems__")),
)
_STREAM: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("shards", lambda dataset: dataset.num_shards),
    ("stream", _stream),
    ("shuffle_buffer", _shuffle_buffer),
)
