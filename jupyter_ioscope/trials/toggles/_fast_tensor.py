"""Lists of arrays and of numbers become tensors in one go, in a trial's child only.

`torch.tensor` walks through a list number by number. numpy joins arrays by copying whole blocks
and reads lists of numbers several times faster, with the same result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_LEAST = 64  # numbers; below that there is nothing to gain
_NAMES = ("tensor", "as_tensor")


@dataclass(frozen=True)
class FastTensors:
    """`torch.tensor(list)` and `torch.as_tensor(list)` by way of numpy, where that gives the same
    tensor. `tensors_too`: a list of equally shaped tensors, which torch refuses, is stacked."""

    tensors_too: bool = False

    def install(self) -> None:
        import torch

        for name in _NAMES:
            original = getattr(torch, name)
            if not hasattr(original, "_ioscope_plain"):
                setattr(torch, name, self._wrapped(original))

    def _wrapped(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def made(data: Any, *args: Any, **kwargs: Any) -> Any:
            if (
                type(data) in (list, tuple)
                and len(data)
                and not args
                and kwargs.keys() <= {"dtype"}
            ):
                fast = by_numpy(data, self.tensors_too)
                if fast is not None:
                    return fast.to(kwargs["dtype"]) if kwargs.get("dtype") is not None else fast
            return original(data, *args, **kwargs)

        made._ioscope_plain = original  # type: ignore[attr-defined]
        return made


def by_numpy(data: Any, tensors_too: bool = False) -> Any:
    """The tensor that torch.tensor would make of a list, or None where that is not certain."""
    import numpy
    import torch

    first = data[0]
    kinds = set(map(type, data))
    if kinds == {numpy.ndarray}:
        return _stacked(data)
    if tensors_too and kinds == {torch.Tensor} and first.ndim:
        return torch.stack(list(data)) if len({t.shape for t in data}) == 1 else None
    depth, inner = _innermost(first)
    if not depth or type(inner) not in (int, float):
        return None
    return _numbers(data, type(inner) is float)


def _stacked(arrays: Any) -> Any:
    import numpy
    import torch

    first = arrays[0]
    same = all(a.dtype == first.dtype and a.shape == first.shape for a in arrays)
    if not same or first.dtype.kind not in "biuf" or not first.dtype.isnative:
        return None
    try:
        return torch.from_numpy(numpy.stack(arrays))
    except TypeError:  # a type that torch does not have
        return None


def _innermost(value: Any) -> tuple[int, Any]:
    depth = 0
    while type(value) in (list, tuple) and len(value):
        value, depth = value[0], depth + 1
    return depth, value


def _numbers(data: Any, floats: bool) -> Any:
    import numpy
    import torch

    wide = torch.get_default_dtype()
    if wide not in (torch.float32, torch.float64):
        return None
    name = "float32" if wide == torch.float32 else "float64"
    try:
        # Straight to the final type: each number is rounded once, as torch does.
        with numpy.errstate(all="ignore"):  # too large for float32 is infinite, without a word
            array = numpy.array(data, dtype=name) if floats else numpy.array(data)
    except (ValueError, TypeError, OverflowError):  # ragged, None, text, too large
        return None
    if array.size < _LEAST or array.dtype.kind not in "if":
        return None
    if not floats and array.dtype.kind == "f":
        array = array.astype(name)
    return torch.from_numpy(array)
