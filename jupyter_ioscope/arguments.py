"""Arguments that users give: one sentence for what is of the wrong kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.units import is_number


def kind(value: object) -> str:
    """The type of a value with its article: "an int", "a str"."""
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def checked_bool(name: str, value: object) -> bool:
    """True or False, NumPy's as well: a text such as "no" would count as True.

    Raises:
        InputError: it is something else.
    """
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise InputError(f"{name} is {value!r}: give True or False")
    return bool(value)


def checked_call(name: str, value: object) -> None:
    """A function, or None.

    Raises:
        InputError: it is something else.
    """
    if value is not None and not callable(value):
        raise InputError(f"{name} is {kind(value)}: give a function, or leave it out")


def checked_event(name: str, value: object) -> None:
    """A `threading.Event`, that of another library too, or None.

    Raises:
        InputError: it is something else.
    """
    if value is not None and not callable(getattr(value, "is_set", None)):
        raise InputError(f"{name} is {kind(value)}: give a threading.Event, or leave it out")


def checked_names(name: str, value: Any) -> tuple[str, ...]:
    """Names as a tuple; a single one may stand alone.

    Raises:
        InputError: it holds none.
    """
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Iterable):
        raise InputError(f"{name} is {kind(value)}: give a name, or a list of names")
    return tuple(value)


def checked_pause(name: str, value: object) -> float:
    """Seconds, 0 or more.

    Raises:
        InputError: it is something else.
    """
    if not is_number(value) or value < 0:  # type: ignore[operator]
        raise InputError(f"{name} is {value!r}: give the seconds of your step, 0 or more")
    return value  # type: ignore[return-value]
