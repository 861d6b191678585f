"""The consumer's loop as intervals of time: starting, waiting, working, ending an epoch."""

from __future__ import annotations

from dataclasses import dataclass

from jupyter_ioscope.diagnosis.phases import Interval, clip, subtract, total_ns, union
from jupyter_ioscope.model.profile import Profile


@dataclass(frozen=True)
class Loop:
    """From the first `iter()` to the end of the last step.

    `starts` are calls of `iter()`, `waits` calls of `next()` that gave a batch, `ends` the call of
    `next()` that ended an epoch (it also stops the workers). What lies between belongs to the
    consumer: its step with the batch, and its own code between epochs.
    """

    start_ns: int
    end_ns: int
    starts: tuple[Interval, ...]
    waits: tuple[Interval, ...]
    ends: tuple[Interval, ...]

    @property
    def wall_ns(self) -> int:
        return self.end_ns - self.start_ns

    @property
    def blocked_ns(self) -> int:
        """Time inside `iter()` and `next()`; loops inside one another count once."""
        return total_ns(union((*self.starts, *self.waits, *self.ends)))

    @property
    def step_ns(self) -> int:
        inside = union((*self.starts, *self.waits, *self.ends))
        return total_ns(subtract([(self.start_ns, self.end_ns)], inside))


def loop_of(profile: Profile) -> Loop | None:
    """The loop of a profile, or None when nothing was iterated."""
    marks = [epoch.iter_start_ns for epoch in profile.epochs]
    marks += [batch.wait_start_ns for batch in profile.batches]
    if not marks:
        return None
    start_ns = max(min(marks), profile.start_ns)
    ends = [batch.step_end_ns for batch in profile.batches]
    ends += [epoch.iter_end_ns for epoch in profile.epochs]
    ends += [epoch.end_ns for epoch in profile.epochs if epoch.end_ns is not None]
    end_ns = max(start_ns, min(max(ends), profile.end_ns))
    last_step: dict[int, int] = {}
    for batch in profile.batches:
        last_step[batch.epoch] = max(last_step.get(batch.epoch, 0), batch.step_end_ns)
    finishing = [
        (last_step.get(epoch.epoch, epoch.iter_end_ns), epoch.end_ns)
        for epoch in profile.epochs
        if epoch.end_ns is not None
    ]
    iters = [(epoch.iter_start_ns, epoch.iter_end_ns) for epoch in profile.epochs]
    waits = [(batch.wait_start_ns, batch.wait_end_ns) for batch in profile.batches]
    return Loop(
        start_ns,
        end_ns,
        tuple(clip(iters, start_ns, end_ns)),
        tuple(clip(waits, start_ns, end_ns)),
        tuple(clip(finishing, start_ns, end_ns)),
    )
