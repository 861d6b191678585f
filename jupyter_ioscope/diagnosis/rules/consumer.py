"""The consumer's own work is the limit."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.rules._step import step_of
from jupyter_ioscope.diagnosis.steps import step_place
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent, seconds

# Logging, saving and the like are named from this part of the step on.
LEAST_SAID = 0.05


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if the step took no time."""
    main = facts.waits.consumer
    if main is None or not facts.batches:
        return None
    gain = facts.gain_step()
    limit = facts.waits.wait_fraction < 0.5
    return finding(
        facts,
        gain,
        cause="not_loader_bound",
        resource="consumer",
        title="Your own step with the batch is the limit"
        if limit
        else "Your own step with the batch takes a part of the time",
        evidence=(
            f"The step takes {seconds(facts.step_s)} a batch, "
            f"{percent(main.fraction('step'))} of the loop's time.",
            f"{percent(facts.waits.wait_fraction)} of the time was spent waiting for data.",
            _made_of(facts),
        ),
        advice=_advice(facts, limit),
    )


def _made_of(facts: Facts) -> str:
    """What the step was seen in, and side work that is worth a word but no finding."""
    place = step_place(facts.profile)
    parts = step_of(facts).kinds
    side = [f"{percent(part)} {kind}" for kind, part in parts.items() if part >= LEAST_SAID]
    lines = [f"Outside the loader it was seen mostly in {place}." if place else ""]
    lines += [f"Of the step, {' and '.join(side)}." if side else ""]
    return " ".join(line for line in lines if line)


def _advice(facts: Facts, limit: bool) -> str:
    if limit and not facts.alone:
        return "The loader keeps up. Only a faster step makes this loop faster."
    if limit:
        return "Mostly a faster step makes this loop faster."
    if facts.alone:
        return "The next batch is made only after the step has ended: both times add up."
    return "A faster step helps as far as the loader keeps up with it."


RULE = Rule("consumer", judge)
