"""Names the user's innermost function of a stack."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_ioscope.diagnosis.hot import users
from jupyter_ioscope.model.readings import Frame


def place_of(frames: Sequence[Frame]) -> str:
    """`load in In [4], line 9`; empty for a stack without code of the user's."""
    own = [frame for frame in frames if users(frame)]
    if not own:
        return ""
    frame = own[-1]
    return f"{frame.name} in {frame.file}" + (f", line {frame.line}" if frame.line else "")
