"""A faster JSON parser in place of the standard one, in a trial's child and its workers."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jupyter_ioscope.trials.toggles._rebind import rebind

PARSERS = {"orjson": "orjson.loads", "msgspec": "msgspec.json.decode"}


def parser(name: str) -> Callable[[Any], Any]:
    """The parsing function of a library in `PARSERS`."""
    if name == "orjson":
        found: Callable[[Any], Any] = importlib.import_module("orjson").loads
        return found
    decode: Callable[[Any], Any] = importlib.import_module("msgspec.json").Decoder().decode
    return decode


@dataclass(frozen=True)
class FastJson:
    """`json.loads` without options goes to the other parser; what that refuses (NaN, bytes that
    are not UTF-8) goes to the standard one after all."""

    library: str

    def install(self) -> None:
        import json

        original = json.loads
        if hasattr(original, "_ioscope_fast"):
            return
        fast = parser(self.library)

        @functools.wraps(original)
        def loads(text: Any, **options: Any) -> Any:
            if options:
                return original(text, **options)
            try:
                return fast(text)
            except Exception:
                return original(text)

        loads._ioscope_fast = True  # type: ignore[attr-defined]
        rebind(json, "loads", loads)


def difference(standard: Any, other: Any) -> str:
    """In words, the first way in which two parsed values differ; "" when they are alike to the
    last bit, in type and in order."""
    if type(standard) is not type(other):
        return f"{_short(standard)} becomes {_short(other)} ({type(other).__name__})"
    if isinstance(standard, dict):
        if list(standard) != list(other):
            return f"keys {_short(list(standard))} become {_short(list(other))}"
        return next((d for key in standard if (d := difference(standard[key], other[key]))), "")
    if isinstance(standard, list):
        if len(standard) != len(other):
            return f"a list of {len(standard)} becomes one of {len(other)}"
        pairs = zip(standard, other, strict=True)
        return next((d for one, two in pairs if (d := difference(one, two))), "")
    # repr tells 0.0 from -0.0, and one NaN from no other.
    return "" if repr(standard) == repr(other) else f"{_short(standard)} becomes {_short(other)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
