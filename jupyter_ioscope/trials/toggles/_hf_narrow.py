"""The narrowest types that hold every value of a column, looked at value by value."""

from __future__ import annotations

from typing import Any, NamedTuple

from jupyter_ioscope.optional import need

# From narrow to wide; torch has no more than these.
_WHOLE = {"uint8": (0, 255), "int16": (-(2**15), 2**15 - 1), "int32": (-(2**31), 2**31 - 1)}
_EXACT = 2**24  # whole numbers above it are no longer exact in float32
_COUNTS = 2**53  # above it every float64 is whole: that says nothing about what it counts
_BITS = {"uint8": 8, "int8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64,
         "uint64": 64, "float32": 32, "float64": 64}  # fmt: skip


class Narrowed(NamedTuple):
    """`new` is "" where the type stays; `text` then says why."""

    old: str
    new: str
    exact: bool
    text: str


def narrowed(column: Any) -> Narrowed:
    """For a pyarrow ChunkedArray of numbers or of lists of them: every value is looked at."""
    pc = need("pyarrow.compute", "narrower types")
    values = flat(column)
    old = {"double": "float64", "float": "float32"}.get(str(values.type), str(values.type))
    if old not in _BITS or _BITS[old] < 16:
        return Narrowed(old, "", True, f"{old} has no narrower type")
    if len(values) == values.null_count:
        return Narrowed(old, "", True, "it holds no value")
    found = pc.min_max(values)
    low, high = found["min"].as_py(), found["max"].as_py()
    if old.startswith("float"):
        return _real(values, old, low, high)
    for name, (least, most) in _WHOLE.items():
        if _BITS[name] < _BITS[old] and least <= low and high <= most:
            return Narrowed(old, name, True, f"{low:,} to {high:,}")
    return Narrowed(old, "", True, f"its values from {low:,} to {high:,} need {old}")


def _real(values: Any, old: str, low: float, high: float) -> Narrowed:
    pc = need("pyarrow.compute", "narrower types")
    if old != "float64":
        return Narrowed(old, "", True, f"{old} is not narrowed: half precision loses digits")
    narrow = values.cast("float32", safe=False)
    if pc.any(pc.and_(pc.is_inf(narrow), pc.invert(pc.is_inf(values)))).as_py():
        return Narrowed(old, "", True, "some of its values overflow float32")
    back = narrow.cast("float64")
    same = pc.or_(pc.equal(values, back), pc.and_(pc.is_nan(values), pc.is_nan(back)))
    exact = bool(pc.all(same).as_py() in (True, None))
    size = pc.abs(values)
    count = pc.and_(pc.greater(size, float(_EXACT)), pc.less_equal(size, float(_COUNTS)))
    whole = pc.and_(pc.equal(pc.floor(values), values), pc.invert(same))
    if pc.any(pc.and_(count, whole)).as_py():
        return Narrowed(old, "", True, f"it holds whole numbers above {_EXACT:,} that would change")
    tiny = pc.and_(pc.equal(narrow, 0.0), pc.not_equal(values, 0.0))
    if pc.any(tiny).as_py():
        return Narrowed(old, "", True, "some of its values are too small for float32")
    text = "exact" if exact else "rounded to 7 digits"
    return Narrowed(old, "float32", exact, f"{low:g} to {high:g}, {text}")


def flat(column: Any) -> Any:
    """All numbers of a column, without the lists around them."""
    pyarrow, pc = need("pyarrow", "narrower types"), need("pyarrow.compute", "narrower types")
    types = pyarrow.types
    while True:
        kind = column.type
        if isinstance(kind, pyarrow.BaseExtensionType):
            column = pyarrow.chunked_array(
                [chunk.storage for chunk in column.chunks], kind.storage_type
            )
        elif types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
            column = pc.list_flatten(column)
        else:
            return column


def with_type(feature: Any, name: str) -> Any:
    """The same feature with another type of number inside; None where it is not plain lists."""
    import copy

    import datasets

    if type(feature) is datasets.Value:
        return datasets.Value(name)
    inner = getattr(feature, "feature", None)
    if inner is None or type(feature).__name__ not in ("List", "LargeList", "Sequence"):
        return None
    narrow = with_type(inner, name)
    if narrow is None:
        return None
    made = copy.copy(feature)
    made.feature = narrow
    return made
