"""Where a toggle leaves what it converts: it lives as long as the comparison."""

from __future__ import annotations

import os
import tempfile

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.trials.spec import LoaderSpec


def new_folder(spec: LoaderSpec, name: str) -> str:
    """A new folder of one toggle, below the comparison's.

    Raises:
        TrialError: there is none, because this is not a trial's own process.
    """
    if not spec.folder:
        raise TrialError("this can only be prepared in a trial's own process")
    return tempfile.mkdtemp(prefix=f"{name}-", dir=spec.folder)


def free_bytes(folder: str) -> int:
    """Bytes free on the file system of `folder`."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize
