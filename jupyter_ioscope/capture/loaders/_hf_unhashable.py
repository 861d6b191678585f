"""Finds what keeps a function from being hashed: the object inside it that cannot be pickled.

`datasets` pickles a transform to make its fingerprint. Where that fails it takes a random one, so
that no later run finds the result; its warning names the whole transform, not the part to blame.
"""

from __future__ import annotations

import functools
import itertools
import time
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_DEPTH = 6
_PARTS = 50  # of one object
_LONGEST_NS = 250_000_000  # this runs inside the user's cell, once a failed transform
_PLAIN = (str, bytes, int, float, complex, bool, type(None), type, types.ModuleType)


class Culprit(NamedTuple):
    """`path` is how one gets to the object ("Tokenize.lock"), `kind` its type with its module."""

    path: str
    kind: str


def find(value: Any, name: str, dumps: Callable[[Any], bytes]) -> Culprit | None:
    """The innermost part of `value` for which `dumps` fails; None where all of it works.

    Each part is pickled as the library did it a moment before; nothing is kept or changed.
    """
    search = _Search(dumps, time.monotonic_ns() + _LONGEST_NS)
    if not search.fails(value):
        return None
    return search.innermost(value, name, _DEPTH)


class _Search:
    def __init__(self, dumps: Callable[[Any], bytes], deadline_ns: int) -> None:
        self._dumps = dumps
        self._deadline_ns = deadline_ns
        self._seen: set[int] = set()

    def fails(self, value: Any) -> bool:
        if isinstance(value, _PLAIN):
            return False
        try:
            self._dumps(value)
        except Exception:  # whatever a user's __reduce__ raises
            return True
        return False

    def innermost(self, value: Any, path: str, depth: int) -> Culprit:
        self._seen.add(id(value))
        for label, part in parts_of(value):
            if depth <= 0 or time.monotonic_ns() > self._deadline_ns:
                break
            if id(part) not in self._seen and self.fails(part):
                return self.innermost(part, _joined(path, label), depth - 1)
        return Culprit(path, kind_of(value))


def _joined(path: str, label: str) -> str:
    return f"{path}{label}" if label.startswith(("[", ".")) else label or path


def kind_of(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else _dotted(kind)


def _dotted(kind: type) -> str:
    module = "" if kind.__module__ == "__main__" else f"{kind.__module__}."
    return f"{module}{kind.__qualname__}"


def parts_of(value: Any) -> Iterator[tuple[str, Any]]:
    """What is pickled with an object, each with its name: a name of its own for variables of a
    function, ".name" for attributes, "[0]" for items."""
    return itertools.islice(_parts(value), _PARTS)


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, functools.partial):
        yield name_of(value.func), value.func
        yield from ((f"[{at}]", item) for at, item in enumerate(value.args))
        yield from value.keywords.items()
    elif isinstance(value, types.MethodType):
        yield type(value.__self__).__qualname__, value.__self__
    elif isinstance(value, types.FunctionType):
        yield from variables_of(value)
    elif isinstance(value, dict):
        yield from ((f"[{key!r:.40}]", item) for key, item in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((f"[{at}]", item) for at, item in enumerate(value))
    else:
        state = getattr(value, "__dict__", None)
        if isinstance(state, dict):
            yield from ((f".{key}", item) for key, item in state.items())


def variables_of(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Variables from outside that a function uses: of the function around it, and global ones."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    for name in sorted(_names(function.__code__, 3)):
        if name in function.__globals__:
            yield name, function.__globals__[name]
    for at, item in enumerate(function.__defaults__ or ()):
        yield f"default {at + 1}", item
    yield from (function.__kwdefaults__ or {}).items()


def _names(code: types.CodeType, depth: int) -> set[str]:
    found = set(code.co_names)
    for inner in code.co_consts:
        if depth and isinstance(inner, types.CodeType):
            found |= _names(inner, depth - 1)
    return found


def name_of(function: Any) -> str:
    """The name of what is called, below any partial: a function's own, else that of its class."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    return str(name) if isinstance(name, str) else type(function).__qualname__
