"""Numbers about Hugging Face datasets: what the dataset tells, and where its time was seen.

Short loops give few stack samples. A share of them is therefore joined with what the library was
measured to need for such a dataset, which counts as `PRIOR_SAMPLES` samples: it decides when there
are none, and hardly matters from some thirty on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from jupyter_ioscope.diagnosis.cycles import Without
from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.hot import users
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.observed import DONE_BEFORE, FIRST_RUN, MISS_BY_CHOICE, Transform
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Frame

PRIOR_SAMPLES = 4.0
# General causes that one about rows of a dataset says more exactly.
GENERAL = (
    "decode_cpu",
    "no_workers_cpu_bound",
    "slow_collate",
    "per_sample_fetch",
    "first_batch_setup",
)
_ITERATES = ("__iter__", "iter", "_iter_pytorch")
_MAKES = ("_map_single", "map")  # a dataset that is made, not read
_FETCHING = ("/_utils/fetch.py", "/_utils/collate.py")

Frames = Sequence[Frame]


class Part(NamedTuple):
    """A part of the fetches' CPU, 0 to 1, with one standard error. `samples` is how many stack
    samples it rests on; without any it is what the library needs as a rule."""

    fraction: float
    error: float
    samples: float

    def times(self, factor: float) -> Part:
        return Part(self.fraction * factor, self.error * factor, self.samples)


def name_of(frame: Frame) -> str:
    """`iter` of `Dataset.iter`: before Python 3.11 code knows its bare name only."""
    return frame.name.replace(".<locals>", "").rpartition(".")[2]


def in_file(frame: Frame, end: str) -> bool:
    return frame.file.replace("\\", "/").endswith(end)


def called(frames: Frames, end: str, *names: str) -> bool:
    """Whether a function of that file (none named: any) is in the stack."""
    return any(in_file(frame, end) and (not names or name_of(frame) in names) for frame in frames)


def joined(seen: float, total: float, usual: float, weight: float = PRIOR_SAMPLES) -> Part:
    """`seen` of `total` samples, and what is usual: the mean of a Beta distribution whose prior
    counts `weight` samples, and its standard error."""
    fraction = (seen + usual * weight) / (total + weight)
    error = math.sqrt(fraction * (1 - fraction) / (total + weight + 1))
    return Part(fraction, error, total)


@dataclass(frozen=True)
class HfFacts:
    """What is known about the main loader's dataset where it is one of `datasets`."""

    facts: Facts

    @property
    def known(self) -> bool:
        return bool(self.facts.loader.fact("kind"))

    def says(self, key: str) -> bool:
        return self.facts.loader.fact(key) == "yes"

    def number(self, key: str) -> int:
        """A number that the dataset tells; -1 where it does not."""
        text = self.facts.loader.fact(key)
        return int(text) if text.isdigit() else -1

    @property
    def format(self) -> str:
        return self.facts.loader.fact("format")

    @property
    def rowwise(self) -> bool:
        """Whether rows are asked for one by one."""
        loader = self.facts.loader
        if loader.library == "datasets":
            return (loader.batch_size or 1) <= 1
        return self.says("wrapped") or not self.says("batched_fetch")

    # -- stacks -----------------------------------------------------------------------------------

    @cached_property
    def fetch_stacks(self) -> tuple[tuple[tuple[Frame, ...], float], ...]:
        """(frames from the fetch on, samples) of the threads that fetch."""
        stacks = self.facts.profile.stacks
        if stacks is None:
            return ()
        role = "consumer" if self.facts.alone else "worker"
        rows = []
        for stack in stacks.stacks:
            if stack.role != role:
                continue
            frames = [stacks.frames[i] for i in stack.frames if 0 <= i < len(stacks.frames)]
            start = _fetch_start(frames)
            if start >= 0:
                rows.append((tuple(frames[start:]), stack.count * stacks.certainty))
        return tuple(rows)

    def seen(self, of: Callable[[Frames], bool], usual: float) -> Part:
        """Part of the samples of fetching that `of` is true for. `usual` is what to expect.

        Raises NotMeasuredError without samples where code of the user's takes part, of which
        nothing is known.
        """
        total = sum(count for _, count in self.fetch_stacks)
        if not total and (self.says("wrapped") or self.format == "custom"):
            raise NotMeasuredError("where the time of a fetch goes", "no stack sample fell into it")
        return joined(sum(count for row, count in self.fetch_stacks if of(row)), total, usual)

    def gain(self, part: Part, step: float = 0.0) -> Gain:
        """What the loop would gain without this part of the CPU of its fetches, and a part of the
        consumer's steps."""
        without = Without(cpu=min(0.95, part.fraction), step=step)
        return self.facts.gain(without, Without(cpu=part.error))

    @property
    def cpu_per_sample_ns(self) -> float:
        """Raises NotMeasuredError where no fetch was recorded."""
        rows = [row for row in self.facts.fetches if row.samples > 0]
        samples = sum(row.samples for row in rows)
        if not samples:
            raise NotMeasuredError("what a sample costs", "no fetch says how many it got")
        return sum(row.cpu_ns for row in rows) / samples

    # -- transforms -------------------------------------------------------------------------------

    @cached_property
    def whole_ns(self) -> int:
        """From the start of the profile to the end of the loop: what a transform is a part of."""
        return max(1, self.facts.loop.end_ns - self.facts.profile.start_ns)

    @property
    def transforms(self) -> tuple[Transform, ...]:
        return self.facts.profile.transforms

    def runs(self, *kinds: str) -> tuple[Transform, ...]:
        """Transforms of these kinds that did not come from the cache."""
        return tuple(row for row in self.transforms if row.kind in kinds and not row.cached)

    def machinery(self, row: Transform) -> Part:
        """Of a transform that calls a function row by row: the part that passing rows to and fro
        takes. Measured by stacks where there are enough, else by `ROW_NS` and `COLUMN_NS`."""
        per_row = FILTER_ROW_NS if row.kind == "filter" else ROW_NS + COLUMN_NS * len(row.columns)
        usual = min(0.95, max(0, row.rows) * per_row / row.cpu_ns) if row.cpu_ns > 0 else 0.0
        seen = total = 0.0
        same = [other for other in self.runs(row.kind) if not other.batched]
        if len(same) == 1:  # stacks carry no times: of several it is not known whose they are
            for frames, count in self._map_stacks():
                total += count
                seen += count if _machinery(frames) else 0.0
        return joined(seen, total, usual, 2 * PRIOR_SAMPLES)

    def _map_stacks(self) -> Iterator[tuple[Frames, float]]:
        """(frames below the library's loop over rows, samples) of the profiled process."""
        stacks = self.facts.profile.stacks
        for stack in stacks.stacks if stacks else ():
            frames = [stacks.frames[i] for i in stack.frames if 0 <= i < len(stacks.frames)]  # type: ignore[union-attr]
            for position, frame in enumerate(frames):
                if name_of(frame) == "_map_single" and in_file(frame, _ARROW):
                    if stack.role == "consumer":
                        yield frames[position:], stack.count * stacks.certainty  # type: ignore[union-attr]
                    break


_ARROW = "datasets/arrow_dataset.py"
# CPU that `map` spends on a row besides calling the function, batches of a thousand rows aside
# (1 us a row): measured 15, 32 and 58 us with 1, 4 and 8 columns of integers. `filter` hands the
# function its rows from a batch: 4 us.
ROW_NS, COLUMN_NS, FILTER_ROW_NS = 9_000, 6_000, 4_000


def _machinery(frames: Frames) -> bool:
    """Whether a stack inside `map` is the library's: no function of the user's, or below it the
    library again (values of a row that are made when asked for)."""
    own = [position for position, frame in enumerate(frames) if users(frame)]
    if not own:
        return True
    return any("/datasets/" in frame.file.replace("\\", "/") for frame in frames[own[-1] + 1 :])


def _fetch_start(frames: Frames) -> int:
    """Index of the first frame below the loader's fetch, or of the dataset's own iteration; -1 for
    a stack outside of both, or inside `map`."""
    for index in range(len(frames) - 1, -1, -1):
        if any(in_file(frames[index], end) for end in _FETCHING):
            while index > 0 and any(in_file(frames[index - 1], end) for end in _FETCHING):
                index -= 1
            return index
    for index, frame in enumerate(frames):
        if "/datasets/" not in frame.file.replace("\\", "/") or users(frame):
            continue
        name = name_of(frame)
        if name in _MAKES:
            return -1
        if name in _ITERATES:
            return index
    return -1


def made_once_ns(profile: Profile, until_ns: int) -> int:
    """Time before an instant in transforms that had to run: the first run of one whose result is
    kept, and those whose result the user does not keep. Rules about transforms judge how they
    ran."""
    total = 0
    for row in profile.transforms:
        first = row.why_missed == FIRST_RUN
        by_choice = row.why_missed.startswith(MISS_BY_CHOICE)
        again = row.why_missed.endswith(DONE_BEFORE)
        if not row.cached and (first or (by_choice and not again)):
            total += max(0, min(row.end_ns, until_ns) - row.start_ns)
    return total


def hf_facts(facts: Facts) -> HfFacts | None:
    """None where the main loader's dataset is none of `datasets`."""
    found = HfFacts(facts)
    return found if found.known else None
