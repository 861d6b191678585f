"""Messages from the page: read strictly, because anything may arrive on a comm."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from jupyter_ioscope.views.words import clean

log = logging.getLogger("ioscope")

# How toggles are named: those of third parties may have dots, those with a number an equals sign.
_NAME = re.compile(r"[A-Za-z0-9_.:=-]{1,64}")
_MOST_TOGGLES = 32

Command = dict[str, Any]  # `Command` of payload.ts


def read_command(content: object) -> Command | None:
    """`{"cmd": "run_ab", "toggles": [...]}`, perhaps with `wholeCell`, or `tune` or `cancel` alone,
    holding nothing else.

    Anything else is logged and None: a page of another version must not break the kernel.
    """
    if isinstance(content, Mapping):
        if content.get("cmd") in ("cancel", "tune"):
            return {"cmd": content["cmd"]}
        toggles = content.get("toggles")
        if content.get("cmd") == "run_ab" and _are_names(toggles):
            command = {"cmd": "run_ab", "toggles": list(dict.fromkeys(toggles or ()))}
            return command | ({"wholeCell": True} if content.get("wholeCell") is True else {})
    log.warning("ioscope: ignored a message from the page: %s", clean(repr(content), 120))
    return None


def _are_names(toggles: object) -> bool:
    return (
        isinstance(toggles, list)
        and len(toggles) <= _MOST_TOGGLES
        and all(isinstance(name, str) and _NAME.fullmatch(name) for name in toggles)
    )
