"""What a change is expected to bring, before it was tried."""

from __future__ import annotations

from typing import NamedTuple


class Prediction(NamedTuple):
    """Throughput of the loop after a change over that before it.

    `low` and `high` hold the later measurement in nine of ten cases. `ratio` is NaN where only a
    bound is known ("at most 1.8 times"): how much of a cost a change removes shows when it is
    tried. `how` says in a sentence what the numbers rest on.
    """

    ratio: float
    low: float
    high: float
    how: str


class Setting(NamedTuple):
    """The numbers of a loader that a model can change. `prefetch` is batches per worker."""

    workers: int
    prefetch: int = 2
    in_order: bool = True


class Predicted(NamedTuple):
    """Steady throughput expected under a setting, with a 90 % interval."""

    setting: Setting
    samples_per_s: float
    low: float
    high: float
