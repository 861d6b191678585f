"""Where the time went: parts of the wall time of the consumer and of every worker.

What is exact and what is sampled:

- run and run-queue time of a thread come from the kernel's own accounting (`schedstat`), and
  run + run queue + blocked = wall;
- length of, and CPU in, every fetch, wait and step come from records;
- only the split of the time *blocked inside fetches* is sampled. Samples are tagged by phase
  (inside or outside a fetch) on the clock that all processes share. Its standard error is in
  every sampled part.
"""

from __future__ import annotations

from jupyter_ioscope.diagnosis.consumer_waits import consumer_waits
from jupyter_ioscope.diagnosis.loop import loop_of
from jupyter_ioscope.diagnosis.other_waits import other_waits
from jupyter_ioscope.diagnosis.phases import made_by
from jupyter_ioscope.diagnosis.spread import UNKNOWN_FRACTION_ERROR, block_ratio_error
from jupyter_ioscope.diagnosis.worker_phases import worker_phases
from jupyter_ioscope.diagnosis.worker_waits import worker_waits
from jupyter_ioscope.model.diagnosis import Waits
from jupyter_ioscope.model.profile import Profile


def waits_of(profile: Profile) -> Waits:
    """Parts of wall time. `wait_fraction` is the time in `iter()` and `next()` over the loop's wall
    time; its error comes from blocks of neighbouring batches."""
    loop = loop_of(profile)
    workers = worker_waits(profile)
    if loop is None or loop.wall_ns <= 0:
        return Waits(None, workers, 0.0, 0.0, other_waits(profile))
    consumer = consumer_waits(profile, loop, made_by(profile.batches, profile.fetches))
    error = block_ratio_error(
        [float(row.wait_ns) for row in profile.batches],
        [float(row.wait_ns + row.step_ns) for row in profile.batches],
    )
    return Waits(
        consumer,
        workers,
        min(1.0, loop.blocked_ns / loop.wall_ns),
        UNKNOWN_FRACTION_ERROR if error is None else error,
        other_waits(profile),
        worker_phases(profile, consumer, workers),
    )
