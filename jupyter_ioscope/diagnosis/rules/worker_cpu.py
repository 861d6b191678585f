"""Workers are busy on the CPU."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._remedies import remedy
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.rules._work import work_line
from jupyter_ioscope.model.diagnosis import Finding


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if fetches in workers used no CPU, and stood in line for none."""
    if facts.alone or not facts.batches:
        return None
    gain = facts.gain_cpu()
    evidence = (
        _words.part_line(facts, "cpu"),
        _words.per_sample_line(facts, "cpu"),
        work_line(facts),
        _words.where_line(facts),
        _words.queue_line(facts),
    )
    return finding(
        facts,
        gain,
        cause="decode_cpu",
        resource="worker_cpu",
        title="Workers are busy making samples on the CPU",
        evidence=evidence,
        advice=advice(facts),
        toggles=toggles(facts),
        where=facts.where(),
    )


def advice(facts: Facts) -> str:
    place = facts.where() or "the work on each sample"
    work = f"make {place} cheaper, or do it once and keep the result"
    known = remedy(facts)
    if known:
        work = f"{known} (see {place})" if facts.where() else known
    more = _words.more_workers(facts)
    if more:
        count = facts.workers
        busy = f"{count} workers keep at most {count}" if count > 1 else "1 worker keeps at most 1"
        return (
            f"Try {more} workers: {_words.cores_text(facts)} may be used and "
            f"{busy} busy. Besides that, {work}."
        )
    full = f"More workers do not help: {_words.cores_text(facts)} are all there is. "
    return (full if _words.cores_full(facts) else "") + work[0].upper() + work[1:] + "."


def toggles(facts: Facts) -> tuple[str, ...]:
    found = _words.IMAGE_TOGGLES if _words.decodes_images(facts) else ()
    return (*found, "workers") if _words.more_workers(facts) else found


RULE = Rule("worker_cpu", judge)
