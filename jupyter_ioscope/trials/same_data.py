"""Whether both arms deliver the same samples. Each delivery comes from a fresh process with the
same seeds, apart from the timed trials.

Contents drawn at random (augmentation) depend on the number of workers, because each worker has a
random stream of its own. So a difference between the arms alone proves nothing: it is first looked
for between A and A with B's workers, and between A and A under another seed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.model.comparison import SameData
from jupyter_ioscope.trials.delivery import Delivered, Limit
from jupyter_ioscope.trials.difference import difference
from jupyter_ioscope.trials.spec import LoaderSpec

# (arm, spec, limit, reseed) -> what it delivered
Deliver = Callable[[str, LoaderSpec, Limit, "int | None"], Delivered]
_ANOTHER_SEED = 90_210
_LIMIT = Limit()
_FEW = 32  # samples that are looked at again
_RANDOM = "Contents are drawn at random"
_UNSEEDED = (
    "Two runs of A with one seed differ, too: contents are drawn at random without a seed, or the "
    "data change meanwhile"
)
_LIMIT_ITERABLE = Limit(samples=2_000)  # a whole epoch tells more: samples have no ids
_MOST_ROWS, _ROWS_S = 200_000, 15.0


def same_data(
    deliver: Deliver,
    spec_a: LoaderSpec,
    spec_b: LoaderSpec,
    toggled: bool,
    longest_s: float = _LIMIT.seconds,
) -> SameData:
    """Compare the first samples of both arms.

    `toggled`: B is A with toggles, so it must not deliver less. `longest_s`: how long samples of A
    are gathered.

    Raises:
        TrialError: an arm cannot deliver, or a toggle loses samples.
    """
    return _Check(deliver, spec_a, spec_b, toggled, longest_s).run()


class _Check:
    def __init__(
        self, deliver: Deliver, a: LoaderSpec, b: LoaderSpec, toggled: bool, longest_s: float
    ) -> None:
        # Delivery out of order changes when samples come, not which: it is left out here.
        self.spec_a, self.spec_b = a.changed(in_order=True), b.changed(in_order=True)
        self.free_b, self.rows = b, b.rows if not a.iterable else None
        self.deliver, self.toggled = deliver, toggled
        self.iterable = a.iterable or b.iterable
        self.first = (_LIMIT_ITERABLE if self.iterable else _LIMIT)._replace(seconds=longest_s)

    def run(self) -> SameData:
        if self.rows is not None:
            return self._by_rows(self.rows)
        a = self.deliver("A", self.spec_a, self.first, None)
        # Everything of a complete epoch, and what comes too much, or just as many as A gave.
        most = 2 * a.samples + 1 if a.complete else a.samples
        self.limit = Limit(most, 2 * _LIMIT.size_bytes, 60.0)
        b = self.deliver("B", self.spec_b, self.limit, None)
        counts = self._counts(a, b) or self._lengths(a, b)
        if counts is not None:
            return counts
        if a.split != b.split or (not a.split and self.spec_a.batch_size != self.spec_b.batch_size):
            return SameData("not_checked", "The arms' batches cannot be split into samples.", 0)
        ids = self._ids(a, b)
        if ids is not None:
            return ids
        number = min(len(a.digests), len(b.digests))
        if a.digests[:number] == b.digests[:number]:
            if not self.free_b.in_order and a.complete:
                return self._out_of_order(a, number)
            return SameData("identical", f"{_first(a, b)}: same order, same bytes.", number)
        if self.iterable:
            other = self._other_order(a, b)
            if other is not None:
                return other
        return self._contents(a, b, number)

    def _counts(self, a: Delivered, b: Delivered) -> SameData | None:
        """A verdict when the arms do not give the same number of samples in an epoch."""
        if not a.complete or b.samples == a.samples:
            if b.complete and b.samples < a.samples:
                return self._fewer(a, b)
            return None
        if b.samples < a.samples:
            return self._fewer(a, b) if b.complete else None  # it was cut off by a limit
        known, more = Counter(a.digests), Counter(b.digests)
        times = max(more.values(), default=1)
        if times > max(known.values(), default=1):
            text = (
                f"B delivers samples up to {times} times an epoch where A delivers each once: the "
                "dataset does not share its samples out between workers "
                "(torch.utils.data.get_worker_info)."
            )
        else:
            text = f"B delivers more than the {a.samples} samples that A delivers in an epoch."
        return SameData("different", text, a.samples)

    def _lengths(self, a: Delivered, b: Delivered) -> SameData | None:
        """A verdict where an epoch is too long to be seen whole, and two loaders of their own tell
        that they hold other numbers of samples."""
        if self.toggled or (a.complete and b.complete):
            return None
        whole = [_epoch_samples(spec) for spec in (self.spec_a, self.spec_b)]
        if None in whole or whole[0] == whole[1]:
            return None
        text = f"An epoch of A has {whole[0]:,} samples, one of B {whole[1]:,}."
        return SameData("different", text, min(a.samples, b.samples))

    def _fewer(self, a: Delivered, b: Delivered) -> SameData:
        often, once = Counter(a.digests), Counter(b.digests)
        if often.keys() == once.keys() and max(often.values()) > max(once.values()) == 1:
            return SameData("different", _repeats(often), b.samples)
        text = f"yields fewer samples than A in an epoch: {b.samples} against {a.samples}"
        if a.samples and not a.complete:
            text += " or more"
        if self.toggled:
            raise TrialError(f"arm B {text}")
        return SameData("different", f"B {text}.", b.samples)

    def _ids(self, a: Delivered, b: Delivered) -> SameData | None:
        number = min(len(a.ids), len(b.ids))
        if a.ids[:number] == b.ids[:number]:
            return None
        again = self.deliver("A", self.spec_a, self.limit, None)
        if again.ids[:number] != a.ids[:number]:
            text = "The order of samples is random and cannot be seeded: nothing was compared."
            return SameData("not_checked", text, 0)
        at = next(i for i in range(number) if a.ids[i] != b.ids[i])
        same = Counter(a.ids[:number]) == Counter(b.ids[:number])
        text = "The same samples in another order" if same else "Other samples"
        return SameData(
            "different", f"{text}: sample {at} is {a.ids[at]} in A and {b.ids[at]} in B.", number
        )

    def _other_order(self, a: Delivered, b: Delivered) -> SameData | None:
        """Iterable datasets: workers take turns, so the order says nothing."""
        known, found = Counter(a.digests), Counter(b.digests)
        if a.complete and b.complete and known == found:
            text = f"{_first(a, b)}: same bytes, in another order, because workers take turns."
            return SameData("identical", text, a.samples)
        if max(found.values()) > max(known.values()):
            text = (
                f"B delivers samples up to {max(found.values())} times: the dataset does not share "
                "them out between workers (torch.utils.data.get_worker_info)."
            )
            return SameData("different", text, b.samples)
        if max(known.values()) > max(found.values()) == 1:
            return SameData("different", _repeats(known), b.samples)
        shares = [(spec.num_workers, spec.shards) for spec in (self.spec_a, self.spec_b)]
        if shares[0] == shares[1] or (a.complete and b.complete):
            return None
        text = (
            "Workers take turns, so the first samples of the arms are not the same ones; the epoch "
            "is too long to compare whole. Neither arm repeated a sample."
        )
        return SameData("not_checked", text, 0)

    def _out_of_order(self, a: Delivered, number: int) -> SameData:
        """An epoch of B as it will be delivered, compared as a set."""
        free = self.deliver("B", self.free_b, self.limit, None)
        if free.split and free.samples == a.samples and Counter(free.digests) != Counter(a.digests):
            text = "Delivered out of order, B's samples are not the ones that A delivers."
            return SameData("different", text, number)
        text = f"All {a.samples} samples of an epoch: same bytes, in an order that may vary."
        return SameData("identical", text, number)

    def _by_rows(self, rows: LoaderSpec) -> SameData:
        """B delivers A's rows in an order of its own: see that each comes once, then have A
        deliver in that order."""
        length = len(self.spec_a.dataset)
        most = min(2 * length + 1, _MOST_ROWS)
        found = self.deliver("B", rows, Limit(most, _LIMIT.size_bytes, _ROWS_S), None)
        times = max(Counter(found.ids).values(), default=0)
        if times > 1 or (found.complete and len(found.ids) != length):
            text = f"delivers {len(set(found.ids))} of {length} rows, up to {times} times an epoch"
            if self.toggled:
                raise TrialError(f"arm B {text}")
            return SameData("different", f"B {text}.", len(found.ids))
        order = [int(row) for row in found.ids]
        self.spec_a = self.spec_a.changed(sampler=order, in_order=True)
        self.limit = Limit()
        a = self.deliver("A", self.spec_a, self.limit, None)
        b = self.deliver("B", self.spec_b, self.limit, None)
        number = min(len(a.digests), len(b.digests))
        whole = f"all {length:,}" if found.complete else f"the first {len(order):,}"
        if a.split == b.split and a.digests[:number] == b.digests[:number]:
            text = (
                f"Of the rows, {whole} came exactly once in an epoch of B; the first {number}, "
                "compared row by row, have the same bytes. The order is another one."
            )
            return SameData("identical", text, number)
        if a.split != b.split:
            return SameData("not_checked", "The arms' batches cannot be split into samples.", 0)
        return self._contents(a, b, number)

    def _contents(self, a: Delivered, b: Delivered, number: int) -> SameData:
        """Same samples, other bytes: random contents, or the doing of B?"""
        held = _held_otherwise(a, b, number)
        if held is not None:
            return held
        workers = {
            "num_workers": self.spec_b.num_workers,
            "prefetch_factor": self.spec_b.prefetch_factor,
            "multiprocessing_context": self.spec_b.multiprocessing_context,
        }
        like_b = self.spec_a.changed(**workers)
        base, few = a, self._few(a, b, number)
        if self.spec_a.num_workers != self.spec_b.num_workers:
            base = self.deliver("A", like_b, self.limit, None)
            if base.digests[:number] == b.digests[:number]:
                return self._random(a, b, number)
        # Near is near, whatever is random about it: only what is not near needs another look.
        found = difference(base, b)
        if found.close:
            return SameData("close", f"{_first(a, b)}: {found.text}.", number, found.largest)
        again = self.deliver("A", like_b, few, None)
        if not _alike(again, base):
            return self._random(a, b, number, _UNSEEDED)
        if self._is_random(few):
            return self._random(a, b, number)
        return SameData("different", f"The contents differ: {found.text}.", number)

    def _few(self, a: Delivered, b: Delivered, number: int) -> Limit:
        """Enough samples to hold the first that differs, and the next ones: whether contents are
        random shows in these, and without workers all of them would take long."""
        at = next((i for i in range(number) if a.digests[i] != b.digests[i]), 0)
        samples = math.ceil(2 * (at + 1) * a.samples / max(1, len(a.digests)))
        return self.limit._replace(samples=min(self.limit.samples, max(_FEW, samples)))

    def _is_random(self, few: Limit) -> bool:
        alone = self.spec_a.changed(num_workers=0, prefetch_factor=None, persistent_workers=False)
        one = self.deliver("A", alone, few, None)
        two = self.deliver("A", alone, few, _ANOTHER_SEED)
        return one.ids == two.ids and not _alike(one, two)

    def _random(self, a: Delivered, b: Delivered, number: int, why: str = _RANDOM) -> SameData:
        same = a.forms[:number] == b.forms[:number]
        what = "samples by index, shapes and types agree" if a.ids else "shapes and types agree"
        if not same:
            what = "their shapes vary too" if self.iterable else "indices agree, shapes vary too"
        text = f"{why}, so they were not compared value by value; {what} ({number} samples)."
        return SameData("not_checked", text, number)


def _epoch_samples(spec: LoaderSpec) -> int | None:
    """How many samples torch draws in an epoch; None where only drawing them tells."""
    if spec.iterable or spec.direct or spec.batch_size is None or spec.prepared is not None:
        return None
    try:
        number = len(spec.sampler)
    except (TypeError, NotImplementedError):
        return None
    return number - number % spec.batch_size if spec.drop_last else number


def _alike(one: Delivered, two: Delivered) -> bool:
    """Whether two deliveries agree as far as both go."""
    number = min(len(one.digests), len(two.digests))
    return one.digests[:number] == two.digests[:number]


def _repeats(counts: Counter[str]) -> str:
    return (
        f"A delivers samples up to {max(counts.values())} times an epoch, B each one once: the "
        "dataset does not share its samples out between workers "
        "(torch.utils.data.get_worker_info)."
    )


def _held_otherwise(a: Delivered, b: Delivered, number: int) -> SameData | None:
    """The same values in other containers or types: a tensor for a list, int32 for int64."""
    if not number or a.values[:number] != b.values[:number]:
        return None
    at = next((i for i in range(number) if a.forms[i] != b.forms[i]), None)
    if at is None:
        return None
    forms = f"{_cut(a.forms[at])} in A and {_cut(b.forms[at])} in B"
    text = f"{_first(a, b)}: the same values, held otherwise: sample {at} is {forms}."
    return SameData("close", text, number, 0.0)


def _cut(text: str, most: int = 120) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _first(a: Delivered, b: Delivered) -> str:
    whole = a.complete and b.complete
    return f"All {a.samples} samples of an epoch" if whole else f"The first {a.samples} samples"
