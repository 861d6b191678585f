"""The consumer's own work is the limit."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent, seconds


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if the step took no time."""
    main = facts.waits.consumer
    if main is None or not facts.batches:
        return None
    gain = facts.gain_step()
    limit = facts.waits.wait_fraction < 0.5
    step_s = sum(row.step_ns for row in facts.batches) / len(facts.batches) / 1e9
    return finding(
        facts,
        gain,
        cause="not_loader_bound",
        resource="consumer",
        title="Your own step with the batch is the limit"
        if limit
        else "Your own step with the batch takes a part of the time",
        evidence=(
            f"The step takes {seconds(step_s)} a batch, "
            f"{percent(main.fraction('step'))} of the loop's time.",
            f"{percent(facts.waits.wait_fraction)} of the time was spent waiting for data.",
        ),
        advice=_advice(facts, limit),
    )


def _advice(facts: Facts, limit: bool) -> str:
    if limit and not facts.alone:
        return "The loader keeps up. Only a faster step makes this loop faster."
    if limit:
        return "Mostly a faster step makes this loop faster."
    if facts.alone:
        return "The next batch is made only after the step has ended: both times add up."
    return "A faster step helps as far as the loader keeps up with it."


RULE = Rule("consumer", judge)
