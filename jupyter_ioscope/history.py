"""The cells that were profiled in this process: what `%ioscope history` tells."""

from __future__ import annotations

from collections import deque

from jupyter_ioscope.model.history import History, Ran
from jupyter_ioscope.recording import Recording

_ran: deque[Ran] = deque(maxlen=50)


def remember(recording: Recording) -> None:
    """Note what a profiled cell found, for `history`. Judges nothing that was not judged before."""
    profile = recording.profile
    judged = recording.__dict__.get("diagnosis")
    first = judged.findings[0].title if judged is not None and judged.findings else ""
    waited_ns = sum(batch.wait_ns for batch in profile.batches)
    share = min(1.0, waited_ns / profile.wall_ns) if profile.wall_ns > 0 else 0.0
    cell = profile.cell.execution_count if profile.cell is not None else 0
    known = all(batch.samples >= 0 for batch in profile.batches)
    samples = sum(batch.samples for batch in profile.batches) if known else -1
    batches = len(profile.batches)
    _ran.append(Ran(cell, profile.label, batches, samples, profile.wall_s, share, first))


def history() -> History:
    """The cells that were profiled in this process, the newest last."""
    return History(tuple(_ran))
