"""Tiny items are fetched and joined one by one, though the batch could be got at once."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.rules._work import (
    CPU_CAUSES,
    collecting,
    cpu_ns_per_sample,
    resource,
)
from jupyter_ioscope.diagnosis.work_kinds import KINDS
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import bytes_text, nanoseconds, percent, significant

# Getting and joining one item costs torch about 3 to 30 µs, however small the item is. Up to
# here the price is the loop's, not the item's.
_MOST_NS = 50_000
_MOST_BYTES = 4_096
_LEAST_SAMPLES = 64
# Work that says that items are more than indexed.
_INDEXING = frozenset(
    ("fetch_loop", "collate", "user", "library", "tensor_build", "to_python", "convert", "random")
)
_REAL_WORK = tuple(kind for kind in KINDS if kind not in _INDEXING)
_MOST_REAL_WORK = 0.3
# One index for the whole batch leaves about a tenth: a copy of the rows.
_SAVED = 0.9


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if a batch were got with one index."""
    if not facts.batches or facts.samples_per_batch < _LEAST_SAMPLES:
        return None
    sample_ns, sample_bytes = cpu_ns_per_sample(facts), _sample_bytes(facts)
    if not 0 < sample_ns <= _MOST_NS or sample_bytes > _MOST_BYTES or _real_work(facts):
        return None
    if _batched(facts, sample_ns):
        return None
    gain = facts.gain_cpu(_SAVED)
    count = facts.samples_per_batch
    return finding(
        facts,
        gain,
        cause="per_sample_fetch",
        resource=resource(facts),
        title="Tiny items are got and joined one by one",
        evidence=(
            f"A batch is made of {significant(count, 3)} items of {bytes_text(sample_bytes)}, each "
            f"got and joined on its own: {nanoseconds(sample_ns)} an item, "
            f"{nanoseconds(sample_ns * count)} a batch.",
            f"The items hold {bytes_text(sample_bytes * count)} a batch: copying so much takes "
            "well below 1 ms.",
            _joining(facts),
        ),
        advice="Get the whole batch with one index: give the dataset a __getitems__(indices) that "
        "returns x[indices], or use batch_size=None with sampler=BatchSampler(...) so that "
        "__getitem__ receives the list. Workers would not help: batches then cost more to hand "
        "over than to make.",
        where=_where(facts),
        toggles=("batched_fetch",),
        refines=(*CPU_CAUSES, "slow_collate", *collecting(facts)),
    )


def _sample_bytes(facts: Facts) -> float:
    try:
        return facts.storage.used_bytes_per_sample
    except NotMeasuredError:
        return 0.0


def _real_work(facts: Facts) -> bool:
    """Whether stacks show work on the items; a loop too short for stacks shows none."""
    try:
        return facts.work.fraction(*_REAL_WORK)[0] > _MOST_REAL_WORK
    except NotMeasuredError:
        return False


def _batched(facts: Facts, sample_ns: float) -> bool:
    """Whether batches are got at once already: then an item costs less than one call."""
    return sample_ns < 500


def _joining(facts: Facts) -> str:
    whole = sum(row.fetch_ns for row in facts.fetches)
    joining = sum(row.collate_ns for row in facts.fetches)
    return f"{percent(joining / whole)} of it is joining them." if whole else ""


def _where(facts: Facts) -> str:
    try:
        return facts.work.where()
    except NotMeasuredError:
        return ""


RULE = Rule("per_sample_fetch", judge)
