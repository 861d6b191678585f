"""A transform is done again although its result could have come from the cache."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.hf_facts import HfFacts
from jupyter_ioscope.diagnosis.rules import _hf
from jupyter_ioscope.diagnosis.rules._rule import Rule
from jupyter_ioscope.diagnosis.rules.hf_map_not_batched import row_by_row
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.observed import DONE_BEFORE, FIRST_RUN, MISS_BY_CHOICE, Transform

# Of a transform whose result the user does not keep, the way it works is the cause where that is
# at least this part of it.
_OWN_WAY = 0.4


def judge(facts: Facts) -> Finding | None:
    """Transforms whose miss has a reason that can be mended. A first run has none, and what the
    user chose not to keep is no trouble until it is done a second time."""
    known = HfFacts(facts)
    rows = [row for row in known.runs("map", "filter", "flatten_indices") if _missed(known, row)]
    if not rows:
        return None
    row = max(rows, key=_hf.took_ns)
    hits = sum(other.cached for other in known.transforms)
    count = len(known.transforms)
    return _hf.of_cell(
        known,
        sum(_hf.took_ns(other) for other in rows),
        0.0,
        cause="hf_map_cache_miss",
        resource="start_up",
        title=f"{_hf.called(row)} is done again: it missed the cache",
        evidence=(
            f"Why: {row.why_missed.removeprefix(MISS_BY_CHOICE)}.",
            _hf.took_line(row),
            f"{hits} of {count} transforms came from the cache.",
        ),
        advice=_advice(row),
        refines=("first_batch_setup", "hf_map_not_batched", "hf_map_numproc_overhead"),
        where=row.function,
    )


def _missed(known: HfFacts, row: Transform) -> bool:
    if not row.why_missed or row.why_missed == FIRST_RUN or _hf.took_ns(row) < _hf.LEAST_NS:
        return False
    if not row.why_missed.startswith(MISS_BY_CHOICE):
        return True
    if not row.why_missed.endswith(DONE_BEFORE):
        return False
    own_way = row_by_row(row) and known.machinery(row).fraction >= _OWN_WAY
    # A copy in the order of an indices mapping is made for the loop that follows.
    return not own_way and row.num_proc == 1 and row.kind != "flatten_indices"


def _advice(row: Transform) -> str:
    why = row.why_missed
    if why.startswith(MISS_BY_CHOICE):
        if "in memory" in why or "in_memory" in why:
            return (
                "Save the dataset once (save_to_disk) and load it again: results are then kept "
                "beside it, and the next run finds them. Or save the result."
            )
        return (
            "Let results be cached (datasets.enable_caching(), no load_from_cache_file=False), or "
            "save the result once with save_to_disk and load that."
        )
    if "cannot be hashed" in why:
        return (
            f"Give {row.kind} a function that can be pickled: make the object that cannot (a "
            "connection, a lock, a client, a logger) inside the function, or a plain function "
            f"without it. Or name the result yourself: {row.kind}(..., new_fingerprint='v1')."
        )
    if "cached file is gone" in why:
        return "Keep the cache folder: results in it are found again by the next run."
    return (
        "Make what the function uses the same in every run: no counters, times, random values or "
        "caches in the objects it holds, tokenizers set up (truncation, padding) before. Or name "
        f"the result yourself: {row.kind}(..., new_fingerprint='v1')."
    )


RULE = Rule("hf_map_cache_miss", judge)
