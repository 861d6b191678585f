"""ioscope: why a training loop waits for data, and the proof of the fix, in the notebook.

    %load_ext ioscope
    %%ioscope              above the cell that iterates a loader

The names below are loaded when first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from jupyter_ioscope.api import (
        Recording,
        bench,
        check_baseline,
        check_storage,
        compare,
        compare_parts,
        figure,
        limits,
        load,
        profile,
        save_baseline,
        tune,
    )
    from jupyter_ioscope.errors import (
        CaptureError,
        InputError,
        IoscopeError,
        MissingPackageError,
        NotMeasuredError,
        ProfileFileError,
        TrialError,
    )
    from jupyter_ioscope.exports import difference, export
    from jupyter_ioscope.trials.sample_cache import CachedDataset

__version__ = "0.1.0"

_HOMES = {
    "CachedDataset": "jupyter_ioscope.trials.sample_cache",
    "Recording": "jupyter_ioscope.api",
    "bench": "jupyter_ioscope.api",
    "check_baseline": "jupyter_ioscope.api",
    "check_storage": "jupyter_ioscope.api",
    "compare": "jupyter_ioscope.api",
    "compare_parts": "jupyter_ioscope.api",
    "difference": "jupyter_ioscope.exports",
    "export": "jupyter_ioscope.exports",
    "figure": "jupyter_ioscope.api",
    "limits": "jupyter_ioscope.api",
    "load": "jupyter_ioscope.api",
    "profile": "jupyter_ioscope.api",
    "save_baseline": "jupyter_ioscope.api",
    "tune": "jupyter_ioscope.api",
    "CaptureError": "jupyter_ioscope.errors",
    "InputError": "jupyter_ioscope.errors",
    "IoscopeError": "jupyter_ioscope.errors",
    "MissingPackageError": "jupyter_ioscope.errors",
    "NotMeasuredError": "jupyter_ioscope.errors",
    "ProfileFileError": "jupyter_ioscope.errors",
    "TrialError": "jupyter_ioscope.errors",
}

__all__ = [
    "CachedDataset",
    "CaptureError",
    "InputError",
    "IoscopeError",
    "MissingPackageError",
    "NotMeasuredError",
    "ProfileFileError",
    "Recording",
    "TrialError",
    "__version__",
    "bench",
    "check_baseline",
    "check_storage",
    "compare",
    "compare_parts",
    "difference",
    "export",
    "figure",
    "limits",
    "load",
    "load_ipython_extension",
    "profile",
    "save_baseline",
    "tune",
    "unload_ipython_extension",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return __all__


def load_ipython_extension(shell: InteractiveShell) -> None:
    """What `%load_ext ioscope` calls."""
    from jupyter_ioscope import magics

    magics.load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """What `%unload_ext ioscope` calls: takes everything back out of the shell."""
    from jupyter_ioscope import magics

    magics.unload(shell)


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "jupyter-ioscope"}]
