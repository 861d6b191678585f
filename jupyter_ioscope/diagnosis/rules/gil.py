"""Fetching or unpacking stands in line for the GIL."""

from __future__ import annotations

import math

from jupyter_ioscope.diagnosis.blocked_stacks import blocked_in
from jupyter_ioscope.diagnosis.consumer_waits import consumer_reading
from jupyter_ioscope.diagnosis.cycles import Without
from jupyter_ioscope.diagnosis.facts import NOISE_SHARE, Facts, Gain
from jupyter_ioscope.diagnosis.gil_holders import Runner, runners
from jupyter_ioscope.diagnosis.phases import Lookup, union
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.spread import Z95, together
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.readings import STATES
from jupyter_ioscope.units import percent

_MOSTLY = 0.5
_MUCH = 0.2  # of a core: who runs that long is named in the title
_LEAST_SEEN = 10  # samples in steps
_NAMED = 2  # threads that run, in the evidence


def judge(facts: Facts) -> Finding | None:
    """Only threads of one process share a GIL: the kernel's, or a worker's that uses threads."""
    if not facts.batches:
        return None
    gain = facts.gain_blocked("gil")
    unpacking, steps = _while_unpacking(facts), _in_steps(facts)
    if not facts.part_ns("gil") and not unpacking.share and not steps.share:
        return None
    loading = gain.share + unpacking.share
    share = loading + steps.share
    rows = (gain, unpacking, steps)
    error = together(*(row.high - row.share for row in rows)) / Z95
    held = _holders(facts, bool(unpacking.share or steps.share))
    first = next((row for row in held if row.where), None)
    own = facts.alone or unpacking.share + steps.share > gain.share
    where = "this process" if own else "the workers"
    return finding(
        facts,
        Gain.of(min(1.0, share), error),
        cause="gil_bound_threads",
        resource="gil",
        title=_title(where, first, "the loader" if loading >= steps.share else "your step"),
        evidence=(
            _words.part_line(facts, "gil") if facts.part_ns("gil") else "",
            f"{percent(unpacking.share)} of the loop's time passed waiting for the GIL in next()."
            if unpacking.share
            else "",
            f"{percent(steps.share)} of the loop's time passed waiting for the GIL in the steps."
            if steps.share >= NOISE_SHARE
            else "",
            *[_runs(row) for row in held if row.where][:_NAMED],
            _waiting(facts),
            _words.where_line(facts) if first is None else "",
        ),
        advice=_advice(first),
        toggles=("workers",) if facts.alone and _words.more_workers(facts) else (),
        where=first.where if first is not None else facts.where(),
        refines=(
            *_hand_over(facts, unpacking),
            *(("not_loader_bound",) if steps.share > _MOSTLY * share else ()),
        ),
    )


def _title(where: str, first: Runner | None, victim: str) -> str:
    """Who keeps it is the cause, and not who stands in line: one thread may do, a step's own."""
    if first is None or first.core_fraction < _MUCH:
        return f"Threads of {where} stand in line for the interpreter lock (GIL)"
    who = f"{first.threads} threads ({first.name})" if first.threads > 1 else f"Thread {first.name}"
    keeps = "keep" if first.threads > 1 else "keeps"
    return f"{who} of {where} {keeps} the interpreter lock (GIL) from {victim}"


def _hand_over(facts: Facts, unpacking: Gain) -> tuple[str, ...]:
    """What hand-over is called, where half of it and more is this line."""
    main = facts.waits.consumer
    handed = main.fraction("hand_over") if main else 0.0
    line = unpacking.share >= _MOSTLY * (handed + unpacking.share) > 0
    return ("workers_overhead", "ipc_python_objects") if line else ()


def _holders(facts: Facts, in_this_process: bool) -> list[Runner]:
    profile = facts.profile
    if facts.alone or in_this_process:
        return runners(profile, (profile.pid,), "consumer")
    return runners(profile, {row.pid for row in facts.waits.workers}, "worker")


def _runs(row: Runner) -> str:
    who = f"{row.threads} threads named {row.name}" if row.threads > 1 else f"Thread {row.name}"
    verb = "run" if row.threads > 1 else "runs"
    used = f"{percent(row.core_fraction)} of a core"
    return f"{who} {verb} meanwhile, on {used}, mostly {row.where}."


def _waiting(facts: Facts) -> str:
    """Where the line was seen: the user's line whose wait for the GIL is longest."""
    try:
        role = "consumer" if facts.alone else ("worker", "consumer")
        places = blocked_in(facts.profile, role, ("gil",))
    except NotMeasuredError:
        return ""
    return f"They stand in line mostly in {places[0].where}." if places else ""


def _advice(first: Runner | None) -> str:
    work = first.where if first is not None else "the Python work that runs beside the loop"
    return (
        f"Move {work} into a process of its own (each process has its own GIL), or stop that "
        "thread while the loop runs."
    )


def _while_unpacking(facts: Facts) -> Gain:
    """With workers: the consumer waiting for the GIL inside `next()`."""
    main = facts.waits.consumer
    if facts.alone or main is None:
        return Gain(0.0, 0.0, 0.0)
    part = next((row for row in main.parts if row.name == "gil"), None)
    if part is None:
        return Gain(0.0, 0.0, 0.0)
    return Gain.of(part.time_ns / main.wall_ns, part.error_ns / main.wall_ns)


def _in_steps(facts: Facts) -> Gain:
    """What the loop would gain if the step never waited for the GIL: a thread of the step's own, a
    logger or a plot, keeps it from the step as from the loader."""
    reading = consumer_reading(facts.profile)
    steps = Lookup(union((row.wait_end_ns, row.step_end_ns) for row in facts.batches))
    gil = STATES.index("gil")
    seen = [
        state == gil
        for time_ns, state in zip(reading.sample_ns, reading.states, strict=False)
        if steps.index(time_ns) >= 0
    ] if reading is not None else []  # fmt: skip
    if len(seen) < _LEAST_SEEN or not any(seen):
        return Gain(0.0, 0.0, 0.0)
    part = sum(seen) / len(seen)
    error = math.sqrt(part * (1 - part) / len(seen))
    return facts.gain(Without(step=part), Without(step=error))


RULE = Rule("gil", judge)
