"""Arrays are stored as lists of lists: every inner list becomes an array of its own."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.hf_facts import GENERAL, Frames, HfFacts, called, hf_facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import plus_minus

_FORMATTING = "datasets/formatting/"
# CPU for an inner list, by format: measured on rows of 8, 32 and 256 of them.
_LIST_NS = {"numpy": 5_000, "torch": 9_000, "jax": 9_000, "tensorflow": 9_000}
# What reading the same row as one flat list or array costs.
_FLAT_NS = {True: 90_000, False: 10_000}  # rows one by one; in batches


def judge(facts: Facts) -> Finding | None:
    """Fetches that were seen turning Arrow lists into arrays, where lists are nested."""
    known = hf_facts(facts)
    if known is None or not facts.loader.fact("nested_lists") or known.format not in _LIST_NS:
        return None
    if not facts.batches:
        return None
    inner = known.number("inner_lists_per_row")
    usual = _expected(known, inner)
    part = known.seen(_turns, usual)
    names = facts.loader.fact("nested_lists")
    return finding(
        facts,
        known.gain(part.times(_saved(known, inner))),
        cause="hf_nested_list_features",
        resource="main_cpu" if facts.alone else "worker_cpu",
        title="Arrays are stored as lists of lists",
        evidence=(
            f"Nested lists: {names}. A row holds about {inner:,} inner lists, and each becomes an "
            f"array of its own before they are joined (format “{known.format}”)."
            if inner > 0
            else f"Nested lists: {names}.",
            f"{plus_minus(100 * part.fraction, 100 * part.error, 1)} % of the fetching turns Arrow "
            "lists into arrays.",
            _words.per_sample_line(facts, "cpu"),
        ),
        advice="Store them with a fixed shape: cast_column to Array2D(shape=(h, w), dtype=...) or "
        "Array3D once, before the loop, and read in batches; or store one flat list and reshape.",
        where=facts.where(),
        refines=(*GENERAL, "hf_python_object_rows"),
    )


def _turns(frames: Frames) -> bool:
    return any(_FORMATTING in f.file.replace("\\", "/") for f in frames) and (
        called(frames, "formatting.py", "_arrow_array_to_numpy") or called(frames, "_formatter.py")
    )


def _expected(known: HfFacts, inner: int) -> float:
    """Part of a sample's CPU that its inner lists take by the numbers above."""
    try:
        each_ns = known.cpu_per_sample_ns
    except NotMeasuredError:
        return 0.5
    return min(0.95, max(0, inner) * _LIST_NS[known.format] / each_ns) if each_ns else 0.5


def _saved(known: HfFacts, inner: int) -> float:
    """Part of turning them into arrays that another form of storage saves."""
    if inner <= 0:
        return 0.5
    return max(0.0, 1 - _FLAT_NS[known.rowwise] / (inner * _LIST_NS[known.format]))


RULE = Rule("hf_nested_lists", judge)
