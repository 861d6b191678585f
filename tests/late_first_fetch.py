"""Profiles whose first fetch took longer than the others."""

from __future__ import annotations

from typing import TypeVar

from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.records import Batch, Epoch, Fetch
from tests import builders

Row = TypeVar("Row", Batch, Fetch)


def with_late_first_fetch(value: Profile, extra_ms: float, *, left: bool = True) -> Profile:
    """`value`, a profile of one epoch, with a first fetch so much longer. `left`: the loop was left
    before the end of the epoch."""
    extra_ns = int(extra_ms * 1e6)

    def later(row: Row, *names: str) -> Row:
        return row._replace(**{name: getattr(row, name) + extra_ns for name in names})

    batches = [later(value.batches[0], "wait_end_ns", "step_end_ns")]
    batches += [later(r, "wait_start_ns", "wait_end_ns", "step_end_ns") for r in value.batches[1:]]
    fetches = [later(value.fetches[0], "end_ns")]
    fetches += [later(row, "start_ns", "end_ns") for row in value.fetches[1:]]
    epoch = value.epochs[0]
    end_ns = None if left else (epoch.end_ns or 0) + extra_ns
    ended = Epoch(epoch.epoch, epoch.loader, epoch.iter_start_ns, epoch.iter_end_ns, end_ns)
    return builders.without(
        value,
        batches=tuple(batches),
        fetches=tuple(fetches),
        epochs=(ended,),
        end_ns=value.end_ns + extra_ns,
    )
