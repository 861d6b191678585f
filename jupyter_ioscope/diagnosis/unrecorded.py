"""What a cell did that iterated something nobody records: a loader written by hand, a generator.

There are no batches, so the whole profiled stretch is judged: the exact CPU of all threads of the
process, the states of the thread that ran the cell and of its helpers, and stacks. A cell may also
just compute. Only what is seen below an iterator of the user's (a generator, `__iter__`,
`__next__`, `__getitem__`), or in threads that work for it, counts as getting data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

from jupyter_ioscope.diagnosis.consumer_waits import consumer_reading
from jupyter_ioscope.diagnosis.hot import users
from jupyter_ioscope.diagnosis.inside import behind
from jupyter_ioscope.diagnosis.places import place_of
from jupyter_ioscope.diagnosis.steps import consumer_stacks
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, Frame, ThreadReadings

# The protocol of Python's iterators and sequences.
_PROTOCOL = ("__iter__", "__next__", "__getitem__", "__getitems__", "__aiter__", "__anext__")
# A cell shorter than this was over before its threads could be seen.
LEAST_S = 0.3
_LEAST_SAMPLES = 8
# Waits of a thread for another one of its process.
_FOR_ANOTHER = ("futex", "pipe")


class Unrecorded:
    """Numbers of the profiled stretch of a cell without a recorded loader.

    Raises `NotMeasuredError`, with the reason, when asked for what was not seen.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    @property
    def applies(self) -> bool:
        """Whether nothing was recorded of what the cell iterated, and it ran long enough."""
        profile = self.profile
        recorded = profile.batches or profile.epochs or profile.loaders
        return not recorded and profile.wall_s >= LEAST_S

    # -- threads ----------------------------------------------------------------------------------

    @cached_property
    def consumer(self) -> ThreadReadings:
        """The thread that ran the cell."""
        reading = consumer_reading(self.profile)
        if reading is None or len(reading.sample_ns) < _LEAST_SAMPLES:
            raise NotMeasuredError("what the cell did", "the sampler hardly saw its thread")
        return reading

    @cached_property
    def helpers(self) -> tuple[ThreadReadings, ...]:
        """Other threads of the process that used a core or waited for something but each other."""
        rows = self.profile.threads
        own = self.profile.pid
        return tuple(
            row
            for row in rows
            if row.pid == own and row.role not in ("consumer",) and _did_something(row)
        )

    @cached_property
    def children(self) -> tuple[ThreadReadings, ...]:
        """Threads of processes below that used a core."""
        rows = self.profile.threads
        return tuple(row for row in rows if row.pid != self.profile.pid and _cores(row) >= 0.05)

    @cached_property
    def cores(self) -> float:
        """Cores that may be used: affinity and quota honoured."""
        machine = self.profile.machine
        usable = float(max(1, machine.cpus_usable))
        return min(usable, machine.cpu_quota) if machine.cpu_quota else usable

    @property
    def cores_used(self) -> float:
        """Mean number of cores that the process and all below it used."""
        rows = (self.consumer, *self.helpers, *self.children)
        return sum(row.run_ns for row in rows) / self.profile.wall_ns

    @property
    def cores_wanted(self) -> float:
        """The same with the threads that stood in line for a core."""
        rows = (self.consumer, *self.helpers, *self.children)
        return sum(row.run_ns + row.run_queue_ns for row in rows) / self.profile.wall_ns

    @property
    def all_cores_busy(self) -> bool:
        """Whether the work is spread over the cores already."""
        return self.cores >= 2 and self.cores_wanted >= 0.8 * self.cores

    # -- states -----------------------------------------------------------------------------------

    @cached_property
    def states(self) -> dict[str, float]:
        """Fractions of the samples of the cell's thread by state. A wait for a helper counts as
        what the helper was doing: "cpu_elsewhere" when it computed."""
        counts: dict[str, float] = {}
        rows = self._inside(self.consumer)
        for time_ns, state in rows:
            if state in _FOR_ANOTHER and self.helpers:
                found = behind(self.helpers, time_ns)
                state = {"other": "cpu_elsewhere", "lock": state}.get(found, found)
            counts[state] = counts.get(state, 0.0) + 1.0
        return {state: count / len(rows) for state, count in counts.items()} if rows else {}

    def _inside(self, reading: ThreadReadings) -> list[tuple[int, str]]:
        """Samples while the cell ran (the sampler starts a little earlier)."""
        first, last = self.profile.start_ns, self.profile.end_ns
        return [
            (time_ns, STATES[state])
            for time_ns, state in zip(reading.sample_ns, reading.states, strict=False)
            if first <= time_ns < last and 0 <= state < len(STATES)
        ]

    @cached_property
    def in_line_for_gil(self) -> float:
        """Mean number of threads of the process that stood in line for the GIL."""
        rows = [self._inside(row) for row in (self.consumer, *self.helpers)]
        beats = max((len(row) for row in rows), default=0)
        waiting = sum(state == "gil" for row in rows for _, state in row)
        return waiting / beats if beats else 0.0

    @cached_property
    def runnable(self) -> float:
        """Mean number of threads of the process that ran or wanted to."""
        rows = [self._inside(row) for row in (self.consumer, *self.helpers)]
        beats = max((len(row) for row in rows), default=0)
        return sum(s == "running" for row in rows for _, s in row) / beats if beats else 0.0

    def error(self, fraction: float) -> float:
        """One standard error of a fraction of the cell's samples. Neighbouring samples may fall
        into one wait: runs of equal states are the draws, or one sample in eight, because short
        waits of one kind look like one run."""
        states = [state for _, state in self._inside(self.consumer)]
        runs = 1 + sum(one != other for one, other in pairwise(states))
        runs = max(runs, len(states) // 8)
        smooth = (fraction * runs + 1) / (runs + 2)
        return math.sqrt(smooth * (1 - smooth) / (runs + 2))

    # -- stacks -----------------------------------------------------------------------------------

    @cached_property
    def _stacks(self) -> list[tuple[list[Frame], float]]:
        rows = [(frames, float(stack.count)) for stack, frames in consumer_stacks(self.profile)]
        if sum(count for _, count in rows) < _LEAST_SAMPLES:
            raise NotMeasuredError("where in the code", "hardly any stack of the cell was sampled")
        return rows

    @cached_property
    def data_fraction(self) -> float:
        """Part of the cell's stacks that lies below an iterator of the user's."""
        whole = sum(count for _, count in self._stacks)
        return sum(count for frames, count in self._stacks if self.iterates(frames)) / whole

    def iterates(self, frames: Sequence[Frame]) -> bool:
        """Whether a stack gets data for the cell's loop: an iterator that the user wrote."""
        return any(users(frame) and self._is_iterator(frame) for frame in frames)

    def _is_iterator(self, frame: Frame) -> bool:
        name = frame.name.rpartition(".")[2]
        if name in _PROTOCOL:
            return True
        return any(
            row.file == frame.file and row.first_line <= frame.line <= row.last_line
            for row in self.profile.generators
        )

    @cached_property
    def waiting_for_data(self) -> float:
        """Of the instants at which the cell's thread was blocked, the part below an iterator; that
        of all stacks where such instants were not recorded."""
        blocked = self.profile.blocked
        hits = whole = 0
        for stack in blocked.stacks if blocked else ():
            if stack.role == "consumer" and blocked:
                count = len(stack.seen_ns)
                whole += count
                hits += count * self.iterates([blocked.frames[i] for i in stack.frames])
        return hits / whole if whole >= _LEAST_SAMPLES else self.data_fraction

    @cached_property
    def computing_for_data(self) -> float:
        """Part of the cell's time in which its thread ran, or waited for a core, below an iterator,
        or waited there for a helper that did."""
        blocked = sum(v for k, v in self.states.items() if k not in ("running", "cpu_elsewhere"))
        return max(0.0, min(1 - blocked, self.data_fraction - blocked * self.waiting_for_data))

    @cached_property
    def place(self) -> str:
        """The user's function that getting data was seen in most, else that of the whole cell."""
        data = [(frames, count) for frames, count in self._stacks if self.iterates(frames)]
        return _commonest_place(data or self._stacks)

    @cached_property
    def place_of_cell(self) -> str:
        """The user's function that the cell's thread was seen in most, whatever it did there."""
        return _commonest_place(self._stacks)

    @cached_property
    def called(self) -> tuple[tuple[str, ...], float]:
        """(what the line calls that most of the data was got in, its part of those samples)."""
        lines: dict[tuple[str, int], float] = {}
        whole = 0.0
        for frames, count in self._stacks:
            if self.iterates(frames) and frames:
                whole += count
                key = (frames[-1].file, frames[-1].line)
                lines[key] = lines.get(key, 0.0) + count
        if not lines:
            return (), 0.0
        best = max(lines, key=lambda key: lines[key])
        calls = [row.names for row in self.profile.calls if (row.file, row.line) == best]
        return (calls[0] if calls else ()), lines[best] / whole


def _commonest_place(stacks: Sequence[tuple[Sequence[Frame], float]]) -> str:
    places: dict[str, float] = {}
    for frames, count in stacks:
        place = place_of(frames)
        places[place] = places.get(place, 0.0) + count
    return max(places, key=lambda key: places[key], default="")


def _cores(row: ThreadReadings) -> float:
    return row.run_ns / max(1, row.last_ns - row.first_ns)


def _did_something(row: ThreadReadings) -> bool:
    """Threads of pools that nobody uses sleep on a condition all the time."""
    if _cores(row) >= 0.02:
        return True
    idle = {STATES.index(name) for name in ("futex", "poll", "pipe", "blocked")}
    busy = sum(state not in idle for state in row.states)
    return busy >= max(2, 0.1 * len(row.states))
