"""Without workers: the CPU that fetching takes from the loop."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if its fetches used no CPU."""
    if not facts.alone:
        return None
    gain = facts.gain_cpu()
    spread = _words.more_workers(facts) if facts.cores >= 2 else 0
    image = ("draft_decode",) if _words.decodes_images(facts) else ()
    place = facts.where() or "the work on each sample"
    return finding(
        facts,
        gain,
        # One core cannot be shared out: then it is the work itself.
        cause="no_workers_cpu_bound" if spread else "decode_cpu",
        resource="main_cpu",
        title="The loop makes its samples itself, on one core",
        evidence=(
            _words.part_line(facts, "cpu"),
            _words.per_sample_line(facts, "cpu"),
            _words.where_line(facts),
        ),
        advice=(
            f"Use num_workers={spread}: {_words.cores_text(facts)} may be used, the loop uses one."
            if spread
            else f"There is one core only: make {place} cheaper, or do it once and keep the result."
        ),
        toggles=("workers", *image) if spread else image,
        where=facts.where(),
    )


RULE = Rule("main_cpu", judge)
