"""Checks that a profile's sums hold: what a reader of a file, and a test, can rely on."""

from __future__ import annotations

from jupyter_ioscope.model.block import check_block
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import ROLES, STATES

# Clocks of two threads are read one after the other, so exact sums may miss by a little.
_SLACK_NS = 50_000_000


def check_profile(profile: Profile) -> list[str]:
    """Sentences about what cannot be true in this profile; empty when all holds."""
    return [
        *_times(profile),
        *_batches(profile),
        *_threads(profile),
        *_series(profile),
        *_stacks(profile),
        *_blocked(profile),
        *(check_block(profile.block) if profile.block is not None else []),
    ]


def _times(profile: Profile) -> list[str]:
    if profile.end_ns < profile.start_ns:
        return ["the profile ends before it starts"]
    return []


def _batches(profile: Profile) -> list[str]:
    epochs = len(profile.epochs)
    for batch in profile.batches:
        if not batch.wait_start_ns <= batch.wait_end_ns <= batch.step_end_ns:
            return [f"batch {batch.batch} ends before it starts"]
        if not 0 <= batch.epoch < epochs:
            return [f"batch {batch.batch} belongs to epoch {batch.epoch}, which is not there"]
    for fetch in profile.fetches:
        if fetch.end_ns < fetch.start_ns:
            return [f"fetch {fetch.task} of worker {fetch.worker} ends before it starts"]
        if not 0 <= fetch.collate_ns <= fetch.fetch_ns + _SLACK_NS:
            return [f"fetch {fetch.task} of worker {fetch.worker} collates longer than it lasts"]
    return []


def _threads(profile: Profile) -> list[str]:
    for thread in profile.threads:
        who = f"thread {thread.tid}"
        if thread.role not in ROLES:
            return [f"{who} has the unknown role {thread.role!r}"]
        if len(thread.sample_ns) != len(thread.states):
            return [f"{who} has {len(thread.sample_ns)} times for {len(thread.states)} states"]
        if any(not 0 <= state < len(STATES) for state in thread.states):
            return [f"{who} has an unknown state"]
        wall_ns = thread.last_ns - thread.first_ns
        if thread.exact and thread.run_ns + thread.run_queue_ns > wall_ns * 1.02 + _SLACK_NS:
            return [f"{who} ran and queued longer than it was watched"]
    return []


def _series(profile: Profile) -> list[str]:
    for name, series in profile.series.items():
        if len(series.time_ns) != len(series.values):
            return [
                f"series {name} has {len(series.time_ns)} times for {len(series.values)} values"
            ]
    return []


def _stacks(profile: Profile) -> list[str]:
    if profile.stacks is None:
        return []
    frames = len(profile.stacks.frames)
    for stack in profile.stacks.stacks:
        if stack.count < 0 or any(not 0 <= index < frames for index in stack.frames):
            return ["a stack names a frame that is not there"]
    return []


def _blocked(profile: Profile) -> list[str]:
    if profile.blocked is None:
        return []
    frames = len(profile.blocked.frames)
    for stack in profile.blocked.stacks:
        if any(not 0 <= index < frames for index in stack.frames):
            return ["a blocked stack names a frame that is not there"]
        if not 0 <= stack.state < len(STATES):
            return ["a blocked stack has an unknown state"]
        if stack.turns and len(stack.turns) != len(stack.seen_ns):
            return ["a blocked stack has a turn for some of its instants only"]
    return []
