"""What a comparison of two arms measured and concluded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from jupyter_ioscope.model.prediction import Prediction
from jupyter_ioscope.units import ratio, ratio_range

VERDICTS = ("faster", "slower", "same", "undecided")


class Trial(NamedTuple):
    """One timed run of an arm. Throughput is over the steady stretch; the rest of the tree's life
    has end points of its own. `external_cpu` is other programs' use of the machine, in cores."""

    arm: str  # "A" or "B"
    pair: int
    samples: int
    batches: int
    discarded_batches: int
    steady_s: float
    samples_per_s: float
    cpu_ms_per_sample: float
    first_batch_s: float
    peak_memory_bytes: int
    external_cpu: float


@dataclass(frozen=True)
class Arm:
    """One configuration with the summary of its trials (median of each end point)."""

    name: str  # "A" or "B"
    label: str
    settings: tuple[tuple[str, str], ...]
    toggles: tuple[str, ...]
    samples_per_s: float
    samples_per_s_low: float
    samples_per_s_high: float
    cpu_ms_per_sample: float
    first_batch_s: float
    peak_memory_bytes: int
    trials: int


@dataclass(frozen=True)
class SameData:
    """Whether both arms delivered the same samples.

    `verdict`: "identical" (same bytes), "close" (same samples, values differ by at most
    `max_difference`), "different", or "not_checked"; `text` is the sentence for the user.
    """

    verdict: str
    text: str
    samples_compared: int
    max_difference: float | None = None


@dataclass(frozen=True)
class Comparison:
    """All trials of two arms and what they show. `ratio` is B over A in throughput, with an
    interval of `confidence` that stays valid however often it is looked at."""

    verdict: str
    ratio: float
    ratio_low: float
    ratio_high: float
    confidence: float
    cpu_ratio: float  # CPU per sample, A over B: above 1 means B needs less
    cpu_ratio_low: float
    cpu_ratio_high: float
    smallest_visible: float  # relative effect that these trials could have seen
    arms: tuple[Arm, Arm]
    trials: tuple[Trial, ...]
    same_data: SameData
    cache: str  # "warm" or "cold"
    cache_text: str  # what was proven about it
    isolation: str  # "forked child", "spawned process", "in the kernel"
    isolation_text: str
    code: str  # what gets the winner
    seconds: float
    notes: tuple[str, ...] = ()
    cancelled: bool = False
    predicted: Prediction | None = None  # what a profile had said before

    @property
    def pairs(self) -> int:
        return min(arm.trials for arm in self.arms)

    def __str__(self) -> str:
        a, b = self.arms
        sure = f"{self.confidence:.0%} interval {ratio_range(self.ratio_low, self.ratio_high)}"
        return (
            f"{b.label} against {a.label}: {self.verdict}, {ratio(self.ratio)} ({sure}), "
            f"{self.pairs} pairs, {self.cache} cache; {self.same_data.text}"
        )


class Offer(NamedTuple):
    """One toggle as offered for one loader. `refusal` is empty when it applies, else the reason."""

    name: str
    title: str
    effect: str  # what it does, one sentence
    cost: str  # what it costs, one sentence
    refusal: str
    suggested: bool
    code: str  # what a user would write
    predicted: Prediction | None = None
