"""Draws the first samples of a loader in a learning child, for a bounded time."""

from __future__ import annotations

import itertools
import time
from typing import Any, NamedTuple

from jupyter_ioscope.trials.build import build
from jupyter_ioscope.trials.samples import leaves
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggles._learn import alone

BATCHES = 8


class Looked(NamedTuple):
    """What was drawn: samples (batches x batch size) and their bytes."""

    samples: int
    delivered_bytes: int


def look(spec: LoaderSpec, batches: int = BATCHES) -> Looked:
    """Draw batches in this process, at least one. The order is that of the trials, because the
    seed is."""
    until = time.monotonic() + spec.look_s
    drawn = delivered = 0
    for number, batch in enumerate(build(alone(spec)), 1):
        drawn = number
        delivered += seen_bytes(batch)
        if number >= batches or time.monotonic() > until:
            break
    return Looked(drawn * (spec.batch_size or 1), delivered)


def indices(spec: LoaderSpec, most: int) -> list[Any]:
    """The first indices that the trials draw; none for iterable datasets."""
    if spec.iterable:
        return []
    loader = build(alone(spec))
    batched = loader.batch_sampler is not None
    drawn = itertools.islice(iter(loader.batch_sampler if batched else loader.sampler), most)
    flat = itertools.chain.from_iterable(drawn) if batched else drawn
    return list(itertools.islice(flat, most))


def dataset_length(spec: LoaderSpec) -> int:
    """Samples of the dataset; 0 where it does not tell."""
    try:
        return len(spec.dataset)
    except TypeError:
        return 0


def seen_bytes(value: Any) -> int:
    """Bytes of the numbers, texts and pictures in a batch or sample."""
    return sum(len(leaf.data) for leaf in leaves(value))
