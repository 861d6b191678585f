"""How much of `next()` the loop's own process spends on asking a sampler which samples come next.

Samplers run in the consumer, with workers too: what they take is counted with the hand-over of a
batch (with workers), or beside its fetch (without), and only stacks tell it from the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from jupyter_ioscope.diagnosis import kinds
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.steps import consumer_stacks
from jupyter_ioscope.diagnosis.unpacking import waits_for_batch
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Frame

_LOADER = "torch/utils/data/dataloader.py"
_ASKS = "_next_index"
# Of the loader's own functions, those that begin an epoch.
_BEGINS = ("_reset", "__init__", "__iter__", "_get_iterator")
LEAST_SEEN = 8  # samples that tell a part from chance


def order_samples(profile: Profile) -> tuple[int, int]:
    """Stack samples of the consumer inside `next()`: (asking the sampler, all else that is neither
    getting items nor waiting for a worker)."""
    asking = other = 0
    for stack, frames in consumer_stacks(profile):
        own = [frame.name.rpartition(".")[2] for frame in frames if _LOADER in kinds.path(frame)]
        if not own or any(name in _BEGINS for name in own):
            continue
        if _ASKS in own:
            asking += stack.count
        elif not kinds.in_fetch(frames) and not _waits(frames, own):
            other += stack.count
    return asking, other


def order_part(facts: Facts) -> tuple[float, float]:
    """(part of the main process's own time in `next()` that goes into asking the sampler, one
    standard error); (0, 0) where it was not seen, or only at the start of epochs.

    What first batches take longer is the start of an epoch, which is a cause of its own. Samples
    of one batch may show one call, so the error is that of as many draws as there were batches.
    """
    asking, other = order_samples(facts.profile)
    if asking < LEAST_SEEN:
        return 0.0, 0.0
    epochs = [[turn.main for turn in epoch] for epoch in facts.replay.epochs]
    whole_ns = sum(map(sum, epochs))
    later = [main for epoch in epochs for main in epoch[1:]]
    if not later or whole_ns <= 0:
        return 0.0, 0.0
    first_ns = 0.0
    if facts.alone:  # workers are given their first tasks before the first `next()`
        first_ns = sum(max(0.0, epoch[0] - median(later)) for epoch in epochs if epoch)
    seen = asking / (asking + other)
    fraction = max(0.0, seen - first_ns / whole_ns)
    if not fraction:
        return 0.0, 0.0
    draws = min(asking + other, len(later)) + 4
    smooth = (seen * (draws - 4) + 2) / draws
    return fraction, min(fraction, math.sqrt(smooth * (1 - smooth) / draws))


def _waits(frames: Sequence[Frame], own: Sequence[str]) -> bool:
    return "_try_get_data" in own and waits_for_batch(frames)
