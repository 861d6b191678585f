"""Optional packages: imported where used, absent loudly, with the install line."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

from jupyter_ioscope.errors import MissingPackageError

# package imported -> the extra of this distribution that brings it
_EXTRAS = {"torch": "torch", "datasets": "hf", "pynvml": "gpu", "matplotlib": "demo", "PIL": "demo"}


def installed(name: str) -> bool:
    """Whether `import name` could work; nothing is imported to find out."""
    if name in sys.modules:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def need(name: str, purpose: str) -> ModuleType:
    """Import an optional package.

    Raises:
        MissingPackageError: it is not installed; the text says what for and how to get it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        extra = _EXTRAS.get(name.partition(".")[0])
        line = f"pip install 'jupyter-ioscope[{extra}]'" if extra else f"pip install {name}"
        raise MissingPackageError(f"{purpose} needs {name}: {line} ({error})") from error


def loaded(name: str) -> ModuleType | None:
    """The module if the user's program has already imported it, else None. Never imports."""
    return sys.modules.get(name)


def ipython_shell() -> Any:
    """IPython's shell, when this program runs in one; else None."""
    ipython = loaded("IPython")
    return ipython.get_ipython() if ipython is not None else None
