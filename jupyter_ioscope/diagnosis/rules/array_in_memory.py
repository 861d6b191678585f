"""Whole arrays are read into memory before the first batch, and the loop uses little of them."""

from __future__ import annotations

import math
from dataclasses import replace

from jupyter_ioscope.diagnosis import kinds
from jupyter_ioscope.diagnosis.before import before_loop
from jupyter_ioscope.diagnosis.facts import NOISE_SHARE, Facts, Gain
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.rules.dataset_in_memory import LEAST_BYTES, MUCH
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import bytes_text, percent, seconds

# A loop that goes through half of what was loaded is served well by having it in memory.
_LITTLE = 0.5
_LEAST_S = 0.2


def judge(facts: Facts) -> Finding | None:
    """The part of the cell that loading took, where this process grew by far more than all batches
    of the loop hold. A loop that uses all of it is faster with it in memory: no finding then."""
    if not facts.batches or not facts.profile.epochs:
        return None
    before_ns = facts.before_ns
    spent = before_loop(facts.profile)
    load_ns = before_ns * spent.fraction(kinds.LOADING)
    grown, used = _grown_bytes(facts), _used_bytes(facts)
    if load_ns < _LEAST_S * 1e9 or grown < LEAST_BYTES or used > _LITTLE * grown:
        return None
    # What was done with the array before the loop is done for all of it as well.
    wasted_ns = max(load_ns, before_ns * spent.fraction(kinds.LOADING, "") * (1 - used / grown))
    whole_ns = before_ns + facts.loop.wall_ns
    share = wasted_ns / whole_ns
    if share < NOISE_SHARE:
        return None
    memory = facts.profile.machine.memory_bytes
    found = finding(
        facts,
        Gain.of(share, share / max(4.0, spent.samples) ** 0.5),
        cause="dataset_in_memory",
        resource="memory",
        title="Whole arrays are read into memory, and the loop uses little of them",
        evidence=(
            f"This process grew by {bytes_text(grown)}; all batches of the loop hold "
            f"{bytes_text(used)} ({percent(used / grown)} of it).",
            f"Reading took about {seconds(load_ns / 1e9)} of {seconds(whole_ns / 1e9)}"
            + (f", mostly in {spent.places[0]}." if spent.places else "."),
        ),
        advice="Open the array without reading it all: np.load(path, mmap_mode='r') (a file that "
        "np.save wrote, not an .npz), or index the open HDF5 dataset in __getitem__. Only rows "
        "that are used are read then, and the page cache keeps what is used again.",
        where=spent.places[0] if spent.places else "",
        refines=("first_batch_setup",),
        harm="memory" if memory and grown > MUCH * memory else "",
    )
    return replace(found, cost_s=wasted_ns / 1e9)


def _used_bytes(facts: Facts) -> float:
    """What the batches of the loop hold; of a loop that was left before its end, what they would
    hold, and more than anything where nobody knows how many there are."""
    used = float(sum(row.batch_bytes for row in facts.fetches))
    total, given = facts.loader.samples_total, sum(max(0, row.samples) for row in facts.fetches)
    if total and given:
        return used * max(1.0, total / given)
    left = any(row.end_ns is None for row in facts.profile.epochs)
    return math.inf if left else used


def _grown_bytes(facts: Facts) -> int:
    """What the profiled process' own memory grew by; 0 where that is not known."""
    for use in facts.profile.processes:
        first, last = use.first_private_bytes, use.last_private_bytes
        if use.pid == facts.profile.pid and min(first, last) > 0:
            return max(0, last - first)
    return 0


RULE = Rule("array_in_memory", judge)
