"""Replays a recorded loop as it would have run without one of its costs.

The model of torch's loader, for batch k, N workers, W = N x prefetch credits, worker service S,
consumer step C, main-process cost m, transit t (from worker to the consumer's door):

    f[k] = max(f[previous batch of the same worker], y[k-W]) + S[k]
    y[k] = max(y[k-1] + C[k-1], f[k] + t[k]) + m[k]

(the delay of a batch that was waited for is t + m). With no workers a batch takes S + m + C. The
model predicted 12 settings of workers x prefetch with 5 %
median error; `misfit` says how well it repeats what was recorded here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jupyter_ioscope.diagnosis.spread import BLOCKS, UNKNOWN_FRACTION_ERROR, ratio_error


class Turn(NamedTuple):
    """One batch as the model sees it; all times in ns."""

    worker: int
    cpu: float  # on a core in the fetch
    off_cpu: float  # the rest of the fetch: run queue and blocked
    put: float  # the worker's own time after the fetch
    step: float
    main: float
    transit: float


class Without(NamedTuple):
    """What is taken away. `off_cpu` is the fraction of the fetches' time off the CPU; the others
    are fractions of their own cost."""

    cpu: float = 0.0
    off_cpu: float = 0.0
    step: float = 0.0
    hand_over: float = 0.0


class Effect(NamedTuple):
    """Part of the batches' time that is freed (0-1), with one standard error from their spread."""

    freed: float
    error: float


@dataclass(frozen=True)
class Replay:
    """The batches of one loader, epoch by epoch. `recorded_ns` is what they really took."""

    epochs: tuple[tuple[Turn, ...], ...]
    credits: int  # 0 without workers
    recorded_ns: int

    def effect(self, without: Without) -> Effect:
        before = self._lengths(Without())
        after = self._lengths(without)
        whole = sum(before)
        if whole <= 0:
            return Effect(0.0, UNKNOWN_FRACTION_ERROR)
        freed = max(0.0, 1.0 - sum(after) / whole)
        error = ratio_error(after, before)
        return Effect(freed, UNKNOWN_FRACTION_ERROR if error is None else error)

    @property
    def misfit(self) -> float:
        """Length of the replay over the recorded length, minus 1."""
        return sum(self._lengths(Without())) / self.recorded_ns - 1 if self.recorded_ns else 0.0

    def _lengths(self, without: Without) -> list[float]:
        """Lengths of consecutive stretches of about equally many batches."""
        turns = sum(len(epoch) for epoch in self.epochs)
        size = max(2, turns // BLOCKS)
        lengths: list[float] = []
        for epoch in self.epochs:
            ends = (
                in_order(epoch, self.credits, without) if self.credits else _alone(epoch, without)
            )
            marks = [*range(size - 1, len(ends) - size, size), len(ends) - 1] if ends else []
            before = 0.0
            for mark in marks:
                lengths.append(ends[mark] - before)
                before = ends[mark]
        return lengths


def service(turn: Turn, without: Without) -> float:
    """Time of a worker for one batch, in ns."""
    put = turn.put * (1 - without.hand_over)
    return turn.cpu * (1 - without.cpu) + turn.off_cpu * (1 - without.off_cpu) + put


def _alone(turns: Sequence[Turn], without: Without) -> list[float]:
    ends: list[float] = []
    now = 0.0
    for turn in turns:
        main = turn.main * (1 - without.hand_over)
        now += service(turn, without) + main + turn.step * (1 - without.step)
        ends.append(now)
    return ends


def in_order(turns: Sequence[Turn], credits: int, without: Without) -> list[float]:
    """End of every step of a loop with workers, in ns since the first task was given out."""
    free: dict[int, float] = {}
    taken: list[float] = []
    ends: list[float] = []
    now = 0.0
    for k, turn in enumerate(turns):
        asked = taken[k - credits] if k >= credits else 0.0
        ready = max(free.get(turn.worker, 0.0), asked) + service(turn, without)
        free[turn.worker] = ready
        keep = 1 - without.hand_over
        got = max(now, ready + turn.transit * keep) + turn.main * keep
        taken.append(got)
        now = got + turn.step * (1 - without.step)
        ends.append(now)
    return ends
