"""Without workers: the CPU that fetching takes from the loop."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._remedies import remedy
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.rules._work import work_line
from jupyter_ioscope.model.diagnosis import Finding

# What handing over a batch costs the main process, and each tensor in it: measured, one tiny tensor
# a batch 0.93 ms, 113 of them 45 ms. Batches of thousands of objects hold numbers, not tensors.
BATCH_NS = 500_000
OBJECT_NS = 400_000
MOST_OBJECTS = 16


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if its fetches used no CPU."""
    if not facts.alone:
        return None
    gain = facts.gain_cpu()
    spread = _words.more_workers(facts) if facts.cores >= 2 and _pays(facts) else 0
    image = _words.IMAGE_TOGGLES if _words.decodes_images(facts) else ()
    place = facts.where() or "the work on each sample"
    known = remedy(facts)
    cheaper = known or f"make {place} cheaper, or do it once and keep the result"
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
            work_line(facts),
            _words.where_line(facts),
            _words.queue_line(facts),
        ),
        advice=(
            f"Use num_workers={spread}: {_words.cores_text(facts)} may be used, the loop uses one."
            + (f" Besides that, {known}." if known else "")
            if spread
            else f"{_why_alone(facts)} {cheaper[0].upper()}{cheaper[1:]}."
        ),
        toggles=("workers", *image) if spread else image,
        where=facts.where(),
    )


def _pays(facts: Facts) -> bool:
    """Whether workers would carry batches for less than making them costs. A loop over a Hugging
    Face dataset itself has no workers to switch on."""
    if facts.loader.library != "torch":
        return False
    rows = facts.fetches
    fetch_ns = sum(row.cpu_ns for row in rows) / len(rows)
    objects = sum(max(1, row.tensors) for row in rows) / len(rows)
    return fetch_ns > min(objects, MOST_OBJECTS) * OBJECT_NS + BATCH_NS


def _why_alone(facts: Facts) -> str:
    if facts.cores < 2:
        return "There is one core only."
    if facts.loader.library != "torch":
        return "A loop over the dataset itself uses one core."
    return "Workers would not help: a batch costs as much to hand over as to make."


RULE = Rule("main_cpu", judge)
