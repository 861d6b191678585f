"""Which setting to time next: a search led by a model that may be wrong.

Timing one setting takes seconds, so few can be timed. The model ranks them; every timed one
corrects it: the logarithm of measured over predicted is interpolated over the logarithm of the
number of workers, so that a throughput that falls with more workers, which no model of
independent workers foresees, pulls the search down after one look. As many workers as cores are
timed before more of them: what they gain is what a model is most often wrong about, and a search
that runs out of time should have seen what needs no such belief.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence

from jupyter_ioscope.model.prediction import Setting

MARGIN = 0.03  # settings this close are equals: the one with fewer workers is better


class Search:
    """Proposes settings until the fastest is bracketed by slower ones or `most` were timed.

    `predicted` holds samples per second for every setting that may be used; `current` is among
    them. `cores` is how many of them the loader may use.
    """

    def __init__(
        self,
        predicted: Mapping[Setting, float],
        current: Setting,
        most: int = 6,
        cores: float = math.inf,
    ) -> None:
        self.predicted, self.current, self.most = dict(predicted), current, most
        self.cores = cores
        self.measured: dict[Setting, float] = {}

    def run(self, measure: Callable[[Setting], float]) -> Setting:
        """Time what is worth it; the best setting."""
        while (setting := self.next()) is not None:
            self.note(setting, measure(setting))
        return self.best()

    def note(self, setting: Setting, samples_per_s: float) -> None:
        """What timing a setting gave; 0 for one that could not run. More workers than those will
        not run either."""
        self.measured[setting] = samples_per_s
        if samples_per_s <= 0:
            self.predicted = {
                row: value
                for row, value in self.predicted.items()
                if row.workers < setting.workers or row in self.measured
            }

    def next(self) -> Setting | None:
        """The setting to time now; None when there is nothing more to learn."""
        if len(self.measured) >= self.most:
            return None
        if self.current not in self.measured:
            return self.current
        left = [row for row in self.predicted if row not in self.measured]
        if not left:
            return None
        hoped = {row: self.corrected(row) for row in left}
        promising = _fewest(hoped, MARGIN)
        best = self.best()
        worth = hoped[promising] > (1 + MARGIN) * self.measured[best]
        pick = promising if worth else self._neighbour(best, hoped)
        if pick is None and len(self.measured) == 1:
            pick = promising  # a model that was never tried is not believed
        if pick is None or pick.workers < self.cores + 1:
            return pick
        return self._as_many_as_cores(hoped) or pick

    def _as_many_as_cores(self, hoped: Mapping[Setting, float]) -> Setting | None:
        """The best setting with a worker for each core; None once one of these was timed."""
        counts = {row.workers for row in self.predicted if 0 < row.workers <= math.ceil(self.cores)}
        count = max(counts, default=0)
        if any(row.workers == count for row in self.measured):
            return None
        rows = {row: value for row, value in hoped.items() if row.workers == count}
        return _fewest(rows, MARGIN) if rows else None

    def best(self) -> Setting:
        """Of the settings timed, the fewest workers within the margin of the fastest."""
        return _fewest(self.measured, MARGIN) if self.measured else self.current

    def corrected(self, setting: Setting) -> float:
        """The model's number, moved by what it missed at the settings timed."""
        value = self.predicted[setting]
        return value * math.exp(self._missed(math.log(setting.workers + 0.5)))

    def _missed(self, place: float) -> float:
        """ln(measured / predicted) at a logarithm of workers, between those that were timed; the
        nearest one's beyond them."""
        by_place: dict[float, list[float]] = {}
        for row, value in self.measured.items():
            if value <= 0:
                continue
            at = math.log(row.workers + 0.5)
            by_place.setdefault(at, []).append(math.log(value / self.predicted[row]))
        if not by_place:
            return 0.0
        places = sorted(by_place)
        values = [sum(by_place[at]) / len(by_place[at]) for at in places]
        index = bisect_left(places, place)
        if index == 0:
            return values[0]
        if index == len(places):
            return values[-1]
        low, high = places[index - 1], places[index]
        part = (place - low) / (high - low)
        return values[index - 1] + part * (values[index] - values[index - 1])

    def _neighbour(self, best: Setting, hoped: Mapping[Setting, float]) -> Setting | None:
        """A setting beside the best one whose number of workers was not timed.

        Fewer workers first, whatever the model says of them: they cost less if they are as fast,
        and a throughput that falls with more is found by going down only. Then more, unless the
        corrected model puts them far below. None when there is nothing beside it to time.
        """
        counts = sorted({row.workers for row in self.predicted})
        at = counts.index(best.workers)
        timed = {row.workers for row in self.measured}
        for side, least in ((at - 1, 0.0), (at + 1, _WORTH * self.measured[best])):
            if not 0 <= side < len(counts) or counts[side] in timed:
                continue
            rows = {row: value for row, value in hoped.items() if row.workers == counts[side]}
            if rows and rows[pick := _fewest(rows, MARGIN)] >= least:
                return pick
        return None


# More workers that the corrected model puts this far below the best are not worth a run.
_WORTH = 0.85


def _fewest(values: Mapping[Setting, float], margin: float) -> Setting:
    """The cheapest key whose value is within `margin` of the largest."""
    top = max(values.values())
    near = [row for row, value in values.items() if value * (1 + margin) >= top]
    return min(near, key=lambda row: (row.workers, row.prefetch, not row.in_order))


def grid(cores: float, current: Setting, most_workers: int) -> Sequence[Setting]:
    """Numbers of workers from none to well above the cores (waits overlap beyond them), each with
    1 to 8 batches ahead, and the loader as it is."""
    top = min(most_workers, max(8, 4 * math.ceil(cores), 2 * current.workers))
    counts = sorted({0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, math.ceil(cores)})
    settings = [Setting(0, 2, current.in_order)]
    settings += [
        Setting(workers, prefetch, current.in_order)
        for workers in counts
        if 0 < workers <= top
        for prefetch in (1, 2, 4, 8)
    ]
    return settings if current in settings else [*settings, current]
