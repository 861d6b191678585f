"""What a search for the best number of workers found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from jupyter_ioscope.model.comparison import Comparison
from jupyter_ioscope.model.prediction import Predicted, Setting


class Tried(NamedTuple):
    """One timed run of a setting during the search. `predicted` is what the model had said."""

    setting: Setting
    samples_per_s: float
    predicted: float
    first_batch_s: float
    peak_memory_bytes: int


class LeftOut(NamedTuple):
    """A setting that was not considered, and why."""

    setting: Setting
    reason: str


@dataclass(frozen=True)
class Tuning:
    """The setting to use, and everything that led to it.

    `best` has the fewest workers among the settings that are as fast as the fastest within
    `margin`. `keep_workers`: they should also live on between epochs (`persistent_workers`),
    because a profile of several epochs showed that starting them again costs something.
    `comparison` is the final A/B of all that against the loader as it is; None where nothing would
    change.
    """

    current: Setting
    best: Setting
    margin: float
    tried: tuple[Tried, ...]
    predicted: tuple[Predicted, ...]
    left_out: tuple[LeftOut, ...]
    comparison: Comparison | None
    code: str
    seconds: float
    isolation_text: str
    notes: tuple[str, ...] = ()
    cancelled: bool = False
    keep_workers: bool = False

    @property
    def changed(self) -> bool:
        return self.best != self.current or self.keep_workers

    def __str__(self) -> str:
        what = f"num_workers={self.best.workers}"
        if self.best.workers:
            what += f", prefetch_factor={self.best.prefetch}"
        if self.keep_workers:
            what += ", persistent_workers=True"
        if not self.changed:
            return f"{what}: the loader as it is; {len(self.tried)} settings were timed"
        told = str(self.comparison) if self.comparison is not None else "not compared yet"
        return f"{what}: {told}"
