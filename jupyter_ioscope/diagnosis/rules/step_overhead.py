"""The step logs, prints, plots or writes more than it computes."""

from __future__ import annotations

from jupyter_ioscope.diagnosis import kinds
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _step
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.rules.checkpoint import LEAST_BYTES
from jupyter_ioscope.diagnosis.spread import shares
from jupyter_ioscope.diagnosis.steps import StepTime
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent, seconds

# Less of the step than this is what any loop reports about itself.
LEAST_PART = 0.25
# Waits for the disk in every step: a line that is flushed or synced.
FLUSHING = "flushing lines to the disk"
_WORDS = {
    kinds.LOGGING: "logs",
    kinds.PLOTTING: "plots",
    kinds.PRINTING: "prints",
    kinds.WRITING: "writes text",
    kinds.PICTURES: "writes pictures or sound",
    kinds.COUNTING: "counts values into histograms",
    FLUSHING: "waits until lines are on the disk",
}
_ADVICE = {
    kinds.LOGGING: "Log every 50th step, collect what belongs together into one call, or log from "
    "a background thread (logging.handlers.QueueHandler).",
    kinds.PLOTTING: "Draw after the epoch or every few hundred steps, update one figure instead of "
    "making new ones, and close figures that are done.",
    kinds.PRINTING: "Print every 50th step, or let a progress bar update a few times a second "
    "(tqdm: mininterval=1).",
    kinds.WRITING: "Keep the records in memory and write them every few hundred steps or after "
    "the epoch.",
    kinds.PICTURES: "Write samples of pictures or sound every few hundred steps, small, or from a "
    "background thread.",
    kinds.COUNTING: "Take histograms of weights and gradients every few hundred steps: each "
    "touches all of their values.",
    FLUSHING: "Write without flush and fsync in the loop, or collect the lines and write them "
    "every few hundred steps.",
}


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if steps did nothing but compute."""
    if not facts.batches:
        return None
    step = _step.step_of(facts)
    parts = _parts(facts, step)
    fraction = min(1.0, sum(parts.values()))
    if fraction < LEAST_PART:
        return None
    # Samples of one step may show one call: as many draws as there were steps, at most.
    draws = max(1, min(step.samples, len(facts.batches)))
    seen = round(draws * fraction)
    _, error = shares([{"it": 1}] * seen + [{"else": 1}] * (draws - seen)).get("it", (0.0, 0.5))
    gain = _step.gain_of_step(facts, fraction, error)
    if gain.share < _step.LEAST_GAIN:
        return None
    largest = max(parts, key=lambda kind: parts[kind])
    where = step.places.get(kinds.SYNCING if largest == FLUSHING else largest, "")
    step_s = step.step_ns / len(facts.batches) / 1e9
    return finding(
        facts,
        gain,
        cause="step_overhead",
        resource="consumer",
        title=f"The step {_WORDS[largest]} "
        + ("more than it computes" if fraction >= 0.5 else f"{percent(fraction)} of its time"),
        evidence=(
            f"{percent(fraction)} of the step's time ({seconds(fraction * step_s)} a batch) is "
            + ", ".join(f"{kind} ({percent(part)})" for kind, part in _ordered(parts))
            + ".",
            f"Seen in {where}." if where else "",
        ),
        advice=_ADVICE[largest],
        where=where,
        refines=("not_loader_bound",),
    )


def _parts(facts: Facts, step: StepTime) -> dict[str, float]:
    found = {kind: step.kinds[kind] for kind in _WORDS if step.kinds.get(kind)}
    small = _step.written_bytes(facts) < LEAST_BYTES * len(facts.batches)
    syncing = _step.syncing_fraction(facts, step)
    if syncing and small and not step.kinds.get(kinds.SAVING):
        found[FLUSHING] = syncing
    return found


def _ordered(parts: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(parts.items(), key=lambda item: -item[1])


RULE = Rule("step_overhead", judge)
