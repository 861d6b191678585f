"""The step saves something and waits until it is on the disk."""

from __future__ import annotations

from jupyter_ioscope.diagnosis import kinds
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _step
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.steps import StepTime
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import bytes_text, percent, seconds

# Long steps are the saves when at least this part of their excess was seen saving. Of a save, the
# copying into the kernel shows in no state and in no function of a library.
SEEN_PART = 0.35
# Less than this a save is a line of a log, not a state.
LEAST_BYTES = 1_000_000


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if no step waited for a file to be written."""
    if not facts.batches:
        return None
    step = _step.step_of(facts)
    saving = _step.saving_fraction(facts, step)
    if saving <= 0 or step.step_ns <= 0 or not _is_state(facts, step):
        return None
    fraction, exact = _fraction(step, saving)
    error = step.disk[1] if not exact else 0.02
    gain = _step.gain_of_step(facts, fraction, error)
    if gain.share < _step.LEAST_GAIN:
        return None
    return finding(
        facts,
        gain,
        cause="checkpoint_stall",
        resource="consumer",
        title="The loop stands still while the step saves to disk",
        evidence=_evidence(facts, step),
        advice="Save in a background thread (copy the state first: it takes milliseconds), or less "
        "often, or to a faster local disk; leave os.fsync out of the loop, or call it once at the "
        "end.",
        where=step.places.get(kinds.SAVING) or step.places.get(kinds.SYNCING, ""),
        refines=("not_loader_bound", "step_overhead"),
    )


def _is_state(facts: Facts, step: StepTime) -> bool:
    """Whether a whole state is saved, not a line: a function that saves was seen, or much was
    written at a time."""
    if step.kinds.get(kinds.SAVING):
        return True
    times = step.stalls.steps if step.disk_in_stalls >= 0.5 else len(facts.batches)
    return _step.written_bytes(facts) >= LEAST_BYTES * times


def _fraction(step: StepTime, saving: float) -> tuple[float, bool]:
    """(Part of the steps that saving takes, whether it is exact): what long steps take above the
    usual one where they are the saves, else as sampled."""
    excess = step.stalls.excess_ns / step.step_ns
    in_stalls = step.disk_in_stalls >= 0.5 or not step.disk[0]
    if in_stalls and saving >= SEEN_PART * excess > 0:
        return excess, True
    return saving, False


def _evidence(facts: Facts, step: StepTime) -> tuple[str, ...]:
    stalls = step.stalls
    lines = []
    if stalls.steps:
        rhythm = f", one in {stalls.every}" if stalls.every > 1 else ""
        lines.append(
            f"{stalls.steps} of {len(facts.batches)} steps{rhythm}, took "
            f"{seconds((stalls.usual_ns + stalls.excess_ns / stalls.steps) / 1e9)} instead of "
            f"{seconds(stalls.usual_ns / 1e9)}."
        )
    if step.disk[0]:
        lines.append(f"{percent(step.disk[0])} of the steps' time was blocked in calls on files.")
    if step.kinds.get(kinds.SAVING):
        lines.append(f"{percent(step.kinds[kinds.SAVING])} of it in functions that save.")
    written = _step.written_bytes(facts)
    if written:
        lines.append(f"{bytes_text(written)} were written to the storage meanwhile.")
    return tuple(lines)


RULE = Rule("checkpoint", judge)
