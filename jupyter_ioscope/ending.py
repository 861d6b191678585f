"""What is kept of a recording when it ends, and of the exception that ended it."""

from __future__ import annotations

import logging

from jupyter_ioscope.capture.profiler import Profiler
from jupyter_ioscope.model.profile import Cell, Profile

log = logging.getLogger("ioscope")

_LONGEST_MESSAGE = 300  # characters


def message_of(error: BaseException | None) -> str:
    """Beginning and end of an error's message: a worker's error brings its traceback along, and
    says at the end what it was. A user's exception may fail to tell anything."""
    try:
        text = str(error) if error is not None else ""
    except Exception:
        return ""
    half = _LONGEST_MESSAGE // 2
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:half]} ... {text[-half:].strip()}"


def profile_of(
    profiler: Profiler, error: BaseException | None, cell: Cell | None
) -> tuple[Profile | None, str]:
    """(the profile of a recording that ends now, "") or (None, why there is none).

    Nothing of ours is raised: the code that was recorded goes on, or has an exception of its own.
    """
    if profiler.forked:
        profiler.forget()
        return None, "this is a copy in a child process: the recording is that of its parent"
    ended_by = type(error).__name__ if error is not None else None
    try:
        return profiler.stop(ended_by, cell, message_of(error)), ""
    except Exception as ours:
        log.warning("ioscope could not make the profile", exc_info=True)
        return None, f"ioscope could not make the profile ({type(ours).__name__}: {ours})"
