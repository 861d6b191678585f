"""The user's usual options, as JupyterLab's settings editor keeps them.

The page sends them before it runs a cell that begins with `%%ioscope`
(labextension/src/settings.ts); what such a cell says itself comes first. Elsewhere they are the
defaults below.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass

log = logging.getLogger("ioscope")


@dataclass(frozen=True)
class Settings:
    """Options of a cell that names none.

    Attributes:
        rate_hz: thread states and stacks per second, 1 to 200.
        stacks: whether to sample stacks for the flame graph.
        live_line: whether to show a line of progress under the running cell.
    """

    rate_hz: float = 25.0
    stacks: bool = True
    live_line: bool = True


_current = Settings()


def current() -> Settings:
    """The settings of this process."""
    return _current


def use(text: str) -> None:
    """Take settings from a page: a JSON object with the fields of `Settings`.

    A value that cannot be used becomes its default: a page of another version, or a setting edited
    by hand, must not break the cell that follows.
    """
    global _current
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        log.warning("ioscope: settings of the page could not be read")
        given = {}
    usual = Settings()
    _current = Settings(
        rate_hz=_rate(given.get("rate_hz"), usual.rate_hz),
        stacks=_flag(given.get("stacks"), usual.stacks),
        live_line=_flag(given.get("live_line"), usual.live_line),
    )


def _rate(value: object, otherwise: float) -> float:
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and 1 <= value <= 200
    return float(value) if usable else otherwise  # type: ignore[arg-type]


def _flag(value: object, otherwise: bool) -> bool:
    return value if isinstance(value, bool) else otherwise
