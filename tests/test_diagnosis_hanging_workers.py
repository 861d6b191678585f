"""Workers that hang from their start on are told from those that are only slow."""

from __future__ import annotations

import dataclasses

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, ThreadReadings
from tests import builders

MS = 1_000_000


def causes(profile: Profile) -> list[str]:
    return [row.cause for row in diagnose(profile).findings]


def hanging(state: str, run_ns: int = 3 * MS, start_method: str = "fork") -> Profile:
    """A loop that was interrupted before its first batch came."""
    base = builders.profile(2, batches=4, start_method=start_method)
    end = base.start_ns + 8_000 * MS
    threads = tuple(
        ThreadReadings(
            row.pid, row.tid, "python", "worker", row.worker, row.entered_ns, end, run_ns, 0, 0,
            sample_ns=tuple(range(row.entered_ns, end, 40 * MS)),
            states=(STATES.index(state),) * len(range(row.entered_ns, end, 40 * MS)),
        )
        for row in base.workers
    )  # fmt: skip
    return builders.without(
        base, end_ns=end, batches=(), fetches=(), threads=threads, ended_by="KeyboardInterrupt",
        epochs=tuple(row._replace(end_ns=None) for row in base.epochs), stacks=None,
    )  # fmt: skip


def test_workers_that_stand_at_a_lock_from_their_start_on_are_said_to_hang() -> None:
    first = diagnose(hanging("futex")).findings[0]
    assert (first.cause, first.harm) == ("fork_deadlock", "run")
    assert first.share > 0.9


@pytest.mark.parametrize(
    "profile",
    [
        hanging("network"),
        hanging("sleep"),
        hanging("lock"),
        hanging("futex", run_ns=4_000 * MS),
        hanging("futex", start_method="spawn"),
    ],
    ids=["network", "sleep", "lock of all processes", "computing", "spawned"],
)
def test_a_slow_first_fetch_is_no_hanging_worker(profile: Profile) -> None:
    assert "fork_deadlock" not in causes(profile)


def test_a_worker_with_a_thread_that_works_does_not_hang() -> None:
    profile = hanging("futex")
    helper = dataclasses.replace(profile.threads[0], tid=77, role="other", run_ns=4_000 * MS)
    other = dataclasses.replace(profile.threads[1], tid=78, role="other", run_ns=4_000 * MS)
    profile = builders.without(profile, threads=(*profile.threads, helper, other))
    assert "fork_deadlock" not in causes(profile)
