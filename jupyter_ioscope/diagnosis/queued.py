"""How many bytes of finished batches wait to be taken by the consumer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from jupyter_ioscope.model.records import Batch, Fetch, LoaderInfo


class Queued(NamedTuple):
    """`peak` and `mean` count finished batches that were not yet taken; `most` is what the loader's
    settings allow: workers x prefetch."""

    peak: int
    mean: float
    most: int
    batch_bytes: float

    @property
    def peak_bytes(self) -> float:
        return self.peak * self.batch_bytes

    @property
    def most_bytes(self) -> float:
        return self.most * self.batch_bytes


def queued(loader: LoaderInfo, batches: Sequence[Batch], made: Mapping[int, Fetch]) -> Queued:
    """Counted from the records: a batch waits from the end of its fetch to the end of the wait that
    returned it. Batches of unknown fetches are left out."""
    rows = [(made[row.batch], row) for row in batches if row.batch in made]
    events = sorted(
        (when, step)
        for fetch, row in rows
        if fetch.worker >= 0
        for when, step in ((fetch.end_ns, 1), (max(fetch.end_ns, row.wait_end_ns), -1))
    )
    peak = now = 0
    area = last = 0
    for when, step in events:
        area += now * (when - last) if last else 0
        last, now = when, now + step
        peak = max(peak, now)
    span = events[-1][0] - events[0][0] if events else 0
    sizes = [fetch.batch_bytes for fetch, _ in rows if fetch.batch_bytes > 0]
    return Queued(
        peak,
        area / span if span else 0.0,
        loader.num_workers * loader.prefetch,
        float(median(sizes)) if sizes else 0.0,
    )
