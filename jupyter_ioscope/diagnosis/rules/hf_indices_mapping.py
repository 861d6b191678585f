"""Rows are read through an indices mapping (after shuffle, select, filter, shard)."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.hf_facts import GENERAL, Frames, HfFacts, Part, called, hf_facts
from jupyter_ioscope.diagnosis.hot import users
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent, plus_minus

_FORMATTING = "datasets/formatting/formatting.py"
# From this many passes on a copy in the new order pays: it costs about two of them.
ENOUGH_EPOCHS = 3

# Part of the CPU that a mapping takes, by what is seen: (finding rows, the rest of the call,
# making Python objects or arrays of them). Measured with datasets 5.2 on 6,000 rows against the
# same rows without a mapping. In batches, rows that lie apart also make the last part dearer: 10
# against 26 ms for Python objects, 23 against 105 for arrays.
_SAVED = {"batches": (0.9, 0.9, 0.5), "fetch": (0.8, 0.0, 0.2), "rows": (0.9, 0.0, 0.05)}
# The same three as parts of a fetch, as measured there.
_USUAL = {"batches": (0.33, 0.17, 0.50), "fetch": (0.50, 0.2, 0.30), "rows": (0.25, 0.15, 0.60)}


def judge(facts: Facts) -> Finding | None:
    """Looking up and gathering rows, and what it makes dearer behind it."""
    known = hf_facts(facts)
    if known is None or not known.says("indices_mapping") or not facts.batches:
        return None
    way = _way(known)
    saved, usual = _SAVED[way], _USUAL[way]
    inside = 1 - _words.collate_fraction(facts)
    if known.format == "custom":  # a transform of the user's takes an unknown part
        inside *= 0.2
    found = known.seen(_finds, inside * usual[0])
    made = known.seen(_makes, inside * usual[2])
    rest = known.seen(_other, inside * usual[1])
    part = sum(a.fraction * b for a, b in zip((found, rest, made), saved, strict=True))
    error = max(item.error * by for item, by in zip((found, rest, made), saved, strict=True))
    epochs = sum(facts.is_main(row.loader) for row in facts.profile.epochs)
    return finding(
        facts,
        known.gain(Part(part, error, found.samples)),
        cause="hf_indices_mapping",
        resource="main_cpu" if facts.alone else "worker_cpu",
        title="Rows are read through an indices mapping, one look-up for each",
        evidence=(
            "The dataset holds an indices mapping: shuffle, select, filter or shard only note the "
            "new order, and every row is looked up and gathered by itself.",
            _seen_line(found),
            f"The loop went over the data {epochs} times." if epochs > 1 else "",
            _words.part_line(facts, "cpu"),
        ),
        advice=_advice(epochs),
        where=facts.where(),
        toggles=("hf_flatten_indices",),
        refines=GENERAL,
    )


def _way(known: HfFacts) -> str:
    if not known.rowwise:
        return "batches" if known.facts.loader.library == "datasets" else "fetch"
    return "rows"


def _finds(frames: Frames) -> bool:
    return called(frames, _FORMATTING, "_query_table_with_indices_mapping")


def _makes(frames: Frames) -> bool:
    own = any(users(frame) for frame in frames[1:])  # a transform of the user's
    return called(frames, _FORMATTING, "format_table") and not own


def _other(frames: Frames) -> bool:
    return (
        called(frames, "datasets/arrow_dataset.py", "_getitem")
        and not called(frames, _FORMATTING, "format_table")
        and not _finds(frames)
    )


def _seen_line(found: Part) -> str:
    if not found.samples:
        return ""
    share = plus_minus(100 * found.fraction, 100 * found.error, 1)
    return f"{share} % of the fetching was seen looking up and gathering rows."


def _advice(epochs: int) -> str:
    once = (
        "to_iterable_dataset(num_shards=64).shuffle(seed=..., buffer_size=1000), or leave the "
        "dataset in its order and shuffle in the sampler (DataLoader(..., shuffle=True))"
    )
    if epochs >= ENOUGH_EPOCHS:
        return (
            "Write the new order out once, before the loop: ds = ds.flatten_indices(). The copy "
            f"costs about {percent(2 / epochs, 0)} of these {epochs} passes. Without it: {once}."
        )
    return (
        "For one or two passes a copy (flatten_indices) costs as much as it saves: read without a "
        f"mapping instead: {once}. With {ENOUGH_EPOCHS} passes or more, ds.flatten_indices() pays."
    )


RULE = Rule("hf_indices_mapping", judge)
