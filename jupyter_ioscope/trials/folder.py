"""The private folder of a comparison, and the end of those whose program was killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jupyter_ioscope.errors import TrialError

_PREFIX = "ioscope-trials-"
_LOCK = "lock"
_LONGEST = 60  # sockets lie in it, whose whole path may have about 100 characters


@contextmanager
def private_folder() -> Iterator[str]:
    """A folder that only this user can read; removed afterwards. A lock on a file in it tells
    others that its program lives, whatever process namespace they are in.

    Raises:
        TrialError: there is no place for it.
    """
    try:
        base = tempfile.gettempdir()
        if len(base) > _LONGEST and os.path.isdir("/tmp"):
            base = "/tmp"
        sweep(base)
        folder = tempfile.mkdtemp(prefix=_PREFIX, dir=base)
    except OSError as error:
        raise TrialError(
            f"trials need a folder for temporary files, and none could be made ({error}): set "
            "TMPDIR to one that can be written to"
        ) from error
    lock = os.open(os.path.join(folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _locked(lock)
        yield folder
    finally:
        os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)


def sweep(base: str) -> None:
    """Remove folders whose program ended without doing so (SIGKILL, power)."""
    for folder in Path(base).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                if _locked(lock):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _locked(fd: int) -> bool:
    """Take the lock if nobody has it; False where it is taken or there are no such locks."""
    try:
        import fcntl

        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True
