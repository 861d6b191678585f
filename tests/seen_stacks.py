"""Builds stacks and readings by hand, for tests of what is concluded from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, Frame, Stack, Stacks, ThreadReadings
from tests.simulator import MS, PID, START_NS, S

Row = tuple[str, int, Sequence[Frame], int]  # role, worker, frames (outermost first), samples

LIB = "/usr/lib/python3.11"
SITE = f"{LIB}/site-packages"
CELL = Frame("<module>", "In [7]", 2, 7)
NEXT = Frame("_BaseDataLoaderIter.__next__", f"{SITE}/torch/utils/data/dataloader.py", 725)
ITER = Frame("DataLoader.__iter__", f"{SITE}/torch/utils/data/dataloader.py", 505)
STEP = Frame("<module>", "In [7]", 3, 7)


def library(name: str, file: str, line: int = 1) -> Frame:
    """A function of installed code, or of the standard library where `file` has no folder."""
    return Frame(name, f"{SITE}/{file}" if "/" in file else f"{LIB}/{file}", line)


def with_stacks(value: Profile, rows: Sequence[Row], rate_hz: float = 25.0) -> Profile:
    """`value` with these stacks instead of its own."""
    frames: dict[Frame, int] = {}
    stacks = tuple(
        Stack(
            role,
            worker,
            value.pid,
            "MainThread",
            tuple(frames.setdefault(frame, len(frames)) for frame in stack),
            count,
        )
        for role, worker, stack, count in rows
    )
    return dataclasses.replace(value, stacks=Stacks("py-spy", rate_hz, True, tuple(frames), stacks))


def samples(value: Profile, fraction: float, rate_hz: float = 25.0) -> int:
    """Samples that a part of the profile's time gives."""
    return round(value.wall_s * rate_hz * fraction)


def with_states(
    value: Profile, spans: Sequence[tuple[int, int]], state: str, rate_hz: float = 25.0
) -> Profile:
    """`value` whose consumer was in `state` in `spans`, and as before outside of them."""
    number = STATES.index(state)
    threads = tuple(
        dataclasses.replace(
            row,
            states=tuple(
                number if any(a <= time_ns < b for a, b in spans) else old
                for time_ns, old in zip(row.sample_ns, row.states, strict=True)
            ),
        )
        if row.role == "consumer"
        else row
        for row in value.threads
    )
    return dataclasses.replace(value, threads=threads)


def thread(
    seconds: float,
    states: Mapping[str, float],
    *,
    run: float,
    tid: int = PID,
    role: str = "consumer",
    name: str = "MainThread",
    pid: int = PID,
) -> ThreadReadings:
    """A thread seen `seconds` long at 25 Hz, its states dealt out evenly in these fractions; `run`
    is the part of the time on a core."""
    count = int(seconds * 25)
    dealt: list[str] = []
    owed = dict.fromkeys(states, 0.0)
    for _ in range(count):
        for state, fraction in states.items():
            owed[state] += fraction
        state = max(owed, key=lambda key: owed[key])
        owed[state] -= 1.0
        dealt.append(state)
    return ThreadReadings(
        pid=pid,
        tid=tid,
        name=name,
        role=role,
        worker=-1,
        first_ns=START_NS,
        last_ns=START_NS + int(seconds * S),
        run_ns=int(run * seconds * S),
        run_queue_ns=0,
        major_faults=0,
        sample_ns=tuple(START_NS + 10 * MS + at * 40 * MS for at in range(count)),
        states=tuple(STATES.index(state) for state in dealt),
    )
