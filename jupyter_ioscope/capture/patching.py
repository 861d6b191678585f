"""Reversible changes to other people's modules: made and undone together."""

from __future__ import annotations

import contextlib
from typing import Any

_MISSING = object()


class Patches:
    """A set of attribute changes. `undo` restores each, unless somebody changed it since."""

    def __init__(self) -> None:
        self._done: list[tuple[Any, str, Any, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Replace `owner.name`, remembering what lay in `owner`'s own namespace."""
        before = vars(owner).get(name, _MISSING)
        setattr(owner, name, value)
        self._done.append((owner, name, before, vars(owner).get(name)))

    def undo(self) -> None:
        """Put everything back. Safe to call twice and after an error half way."""
        while self._done:
            owner, name, before, ours = self._done.pop()
            if vars(owner).get(name) is not ours:
                continue  # another tool patched on top of us; its undo will find our value stale
            with contextlib.suppress(AttributeError, TypeError):
                if before is _MISSING:
                    delattr(owner, name)
                else:
                    setattr(owner, name, before)
