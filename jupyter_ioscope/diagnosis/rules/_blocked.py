"""The judgement that rules about blocked fetches share."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import finding
from jupyter_ioscope.model.diagnosis import WAITS, Finding

# Without workers one kind of wait is named from this part of all such waits on.
_MOSTLY = 0.5


def blocked(
    facts: Facts,
    part: str,
    *,
    cause: str,
    title: str,
    advice: str,
    evidence: tuple[str, ...] = (),
    toggles: tuple[str, ...] = (),
    alone_too: bool = False,
) -> Finding | None:
    """What the loop would gain if fetches never waited for `part`.

    Waits of a loop without workers are waits that workers could overlap, which has a rule of its
    own; with `alone_too` what is waited for gets its name as well, one of those waits where it is
    most of them.
    """
    if not facts.batches or (facts.alone and not (alone_too and _most_of_waits(facts, part))):
        return None
    gain = facts.gain_blocked(part)
    if not facts.part_ns(part):
        return None
    return finding(
        facts,
        gain,
        cause=cause,
        resource=part,
        title=title,
        evidence=(_words.part_line(facts, part), *evidence, _words.where_line(facts)),
        advice=advice,
        toggles=toggles,
        where=facts.where(),
    )


def _most_of_waits(facts: Facts, part: str) -> bool:
    """Of the waits that workers could overlap; others have no second name."""
    if part not in WAITS:
        return True
    return facts.part_ns(part) > _MOSTLY * sum(facts.part_ns(name) for name in WAITS)


def overlap_advice(facts: Facts) -> str:
    """More workers, for waits that can overlap; not where some have nothing to do already."""
    if facts.alone:
        return _words.workers_that_wait(facts)
    idle = facts.workers_without_work
    if idle:
        return (
            f"{idle} of the {facts.workers} workers got nothing to do: divide the data into at "
            "least as many shards as there are workers. Then their waits overlap."
        )
    return (
        f"Try {max(_words.first_workers(facts), 2 * facts.workers)} workers or more: their waits "
        "overlap, and a waiting worker needs no core."
    )
