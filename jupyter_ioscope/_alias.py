"""Installed as `ioscope.py`: the name users import. The same objects as `jupyter_ioscope`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jupyter_ioscope as _package
from jupyter_ioscope import __version__ as __version__

if TYPE_CHECKING:
    from jupyter_ioscope import *  # noqa: F403  (editors complete from it; loads nothing)

__all__ = [*getattr(_package, "__all__", [name for name in vars(_package) if name[0] != "_"])]


def __getattr__(name: str) -> object:
    # at each look-up, so that names which the package loads on first use stay unloaded until then
    return getattr(_package, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(_package)})
