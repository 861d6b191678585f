"""Items are parsed from text, each time they are fetched."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.rules._work import (
    CPU_CAUSES,
    collecting,
    gain_of_work,
    more_workers_too,
    place_line,
    resource,
    seen_line,
)
from jupyter_ioscope.model.diagnosis import Finding

_PARSING = ("text_parse", "regex", "tokenise")
# What follows on parsing: numbers and lists of Python become tensors. It belongs to the text as
# long as parsing is a good part of it.
_FOLLOWS = ("convert", "tensor_build", "to_python")
_GOOD_PART = 0.25


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if items came as arrays instead of text."""
    if not facts.batches:
        return None
    parsing, _ = facts.work.fraction(*_PARSING)
    if not parsing:
        return None
    follows, _ = facts.work.fraction(*_FOLLOWS)
    kinds = (*_PARSING, *_FOLLOWS) if _GOOD_PART * follows <= parsing else _PARSING
    return finding(
        facts,
        gain_of_work(facts, *kinds),
        cause="text_parse_per_item",
        resource=resource(facts),
        title=f"Every item is {_verb(facts)} each time it is fetched",
        evidence=(
            seen_line(facts, "parsing text", *_PARSING),
            place_line(facts, *_PARSING),
            _words.per_sample_line(facts, "cpu"),
        ),
        advice=_advice(facts),
        toggles=_toggles(facts),
        where=facts.work.where(*_PARSING),
        refines=(*CPU_CAUSES, "slow_collate", *collecting(facts)),
    )


def _tokenises(facts: Facts) -> bool:
    return facts.work.fraction("tokenise", "regex")[0] > facts.work.fraction("text_parse")[0]


def _toggles(facts: Facts) -> tuple[str, ...]:
    quick: tuple[str, ...] = ("sample_cache",)
    if _tokenises(facts):
        quick = (*quick, "batched_tokenise")
    elif any("json" in name.lower() for name in facts.work.functions("text_parse")):
        quick = (*quick, "fast_json")
    return (*quick, "workers") if _words.more_workers(facts) else quick


def _verb(facts: Facts) -> str:
    return "split into tokens" if _tokenises(facts) else "parsed from text"


def _advice(facts: Facts) -> str:
    work = (
        "Tokenise the whole data set once, in batches, and store the ids (an .npy or Arrow file)"
        if _tokenises(facts)
        else "Parse the text once and store arrays (an .npy file read with mmap_mode='r', Arrow, "
        "or Parquet); the loader then only copies bytes"
    )
    return f"{work}.{more_workers_too(facts)}"


RULE = Rule("text_parse", judge)
