"""Without the right to look into processes, what they saw of themselves names the state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.states_from_inside import with_states_from_inside
from jupyter_ioscope.model.observed import BlockedStack, BlockedStacks
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, Frame
from tests import builders
from tests import work_values as values

UNSEEN = STATES.index("blocked")
STATE = {"sleep": "sleep", "network": "network", "disk": "disk"}


def refused(kind: str, workers: int = 2) -> Profile:
    """A profile whose states from outside are unknown, with instants from inside."""
    full = builders.profile(workers, states={"cpu": 0.1, kind: 0.9}, batches=160)
    hidden = tuple(
        replace(
            row,
            states=tuple(state if STATES[state] == "running" else UNSEEN for state in row.states),
        )
        for row in full.threads
    )
    seen = [
        BlockedStack(
            row.role,
            row.worker,
            row.pid,
            STATES.index(kind),
            (0,),
            tuple(
                when
                for when, state in zip(row.sample_ns, row.states, strict=True)
                if STATES[state] == kind
            ),
        )
        for row in full.threads
        if row.role in ("worker", "consumer")
    ]
    stacks = tuple(row for row in seen if row.seen_ns)
    blocked = BlockedStacks(20.0, (Frame("read", "/x/data.py", 3),), stacks)
    return builders.without(full, threads=hidden, blocked=blocked, tier="no_ptrace")


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        ("network", "network_latency"),
        ("disk", "disk_latency"),
        ("sleep", "no_workers_latency_bound"),
    ],
)
def test_the_cause_is_the_same_as_with_all_rights(kind: str, cause: str) -> None:
    assert diagnose(refused(kind)).findings[0].cause == cause


def test_without_what_was_seen_inside_the_reason_stays_unknown() -> None:
    blind = builders.without(refused("network"), blocked=None)
    assert diagnose(blind).findings[0].cause != "network_latency"


def test_without_any_sampler_the_blocked_instants_stand_for_the_threads() -> None:
    only = builders.without(refused("network"), threads=(), tier="in_process")
    assert diagnose(only).findings[0].cause == "network_latency"
    filled = with_states_from_inside(only)
    assert {row.role for row in filled.threads} == {"worker"}
    assert not any(row.exact for row in filled.threads)


def test_states_seen_from_outside_are_left_as_they_are() -> None:
    full = builders.profile(2, states={"cpu": 0.1, "disk": 0.9})
    assert with_states_from_inside(full) is full


def test_an_instant_far_away_says_nothing() -> None:
    profile = refused("disk")
    assert profile.blocked is not None
    far = tuple(
        row._replace(seen_ns=tuple(when + 3_600_000_000_000 for when in row.seen_ns))
        for row in profile.blocked.stacks
    )
    moved = builders.without(profile, blocked=replace(profile.blocked, stacks=far))
    assert with_states_from_inside(moved).threads == moved.threads


def off_the_cpu(lost: int, given: int, workers: int = 0) -> Profile:
    """Without a sampler: fetches on a core for a fifth of their time, never seen blocked, from
    which the kernel took the core `lost` times and which gave it up `given` times."""
    made = builders.profile(
        workers, states={"cpu": 0.2, "run_queue": 0.8}, batches=80, tier="in_process"
    )
    rows = tuple(
        row._replace(involuntary_switches=lost, voluntary_switches=given) for row in made.fetches
    )
    nothing = BlockedStacks(20.0, (), ())
    return builders.without(made, fetches=rows, blocked=nothing)


def test_a_fetch_that_kept_losing_its_core_stood_in_line_for_it() -> None:
    diagnosis = diagnose(off_the_cpu(lost=40, given=1))
    assert diagnosis.findings[0].cause == "no_workers_cpu_bound"
    assert "blocked_unseen" not in {row.cause for row in diagnosis.findings}
    consumer = diagnosis.waits.consumer
    assert consumer is not None
    assert consumer.fraction("run_queue") > 0.6


def test_a_fetch_that_gave_its_core_up_may_have_been_blocked_unseen() -> None:
    diagnosis = diagnose(off_the_cpu(lost=1, given=40))
    assert diagnosis.findings[0].cause == "blocked_unseen"


def test_stacks_from_inside_count_for_less() -> None:
    outside = values.profile((values.JSON, 30), (values.USER, 30))
    assert outside.stacks is not None
    inside = builders.without(outside, stacks=replace(outside.stacks, source="in-process"))
    share, error = Facts(outside).work.fraction("text_parse")
    assert Facts(inside).work.fraction("text_parse")[0] == share
    assert Facts(inside).work.fraction("text_parse")[1] > 1.5 * error


@pytest.mark.parametrize("tier", ["no_ptrace", "in_process"])
def test_page_faults_that_keep_the_gil_are_told_by_what_the_kernel_counted(tier: str) -> None:
    """A thread beside a fetch gets no turn while a page comes: it sees none of it blocked."""
    made = refused("sleep")
    assert made.blocked is not None
    rows = tuple(row._replace(major_faults=12, voluntary_switches=25) for row in made.fetches)
    few = tuple(row._replace(seen_ns=row.seen_ns[:1], state=STATES.index("gil"))
                for row in made.blocked.stacks)  # fmt: skip
    hidden = builders.without(
        made, tier=tier, fetches=rows, blocked=replace(made.blocked, stacks=few),
        **({"threads": ()} if tier == "in_process" else {}),
    )  # fmt: skip
    assert diagnose(hidden).findings[0].cause == "page_fault_io"
    calm = tuple(row._replace(major_faults=0) for row in rows)
    assert diagnose(builders.without(hidden, fetches=calm)).findings[0].cause != "page_fault_io"
