"""Fetches stand in line for a lock."""

from __future__ import annotations

from dataclasses import replace

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.locks import Line, longest_line
from jupyter_ioscope.diagnosis.rules._blocked import blocked
from jupyter_ioscope.diagnosis.rules._rule import Rule
from jupyter_ioscope.diagnosis.work import told_by_code
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent, plus_minus, seconds

_THREADS = (
    "If that line computes in a library with threads of its own (matrix products, OpenCV), let "
    "each worker use one: torch.set_num_threads(1) in worker_init_fn."
)


def judge(facts: Facts) -> Finding | None:
    """Blocked on a lock that is not the GIL: shared between processes, a file's, or a thread's."""
    found = blocked(
        facts,
        "lock",
        cause="lock_contention",
        title="Fetches stand in line for a lock",
        advice="Give every worker its own file handle, connection or cache instead of one behind a "
        "lock, or hold the lock for less. More workers only make the line longer.",
        alone_too=True,
    )
    line = _line(facts) if found is not None else None
    if found is None or line is None:
        return found
    threads = _maybe_threads(facts, line)
    return replace(
        found,
        title="Fetches wait for a lock, or for threads of a library"
        if threads
        else f"Fetches stand in line for {line.what}",
        evidence=(*found.evidence[:1], _waiting(line), *_holding(line), *found.evidence[1:]),
        advice=f"{_THREADS} If it takes a lock: {_advice(line)}" if threads else _advice(line),
        where=line.waiting.where,
    )


def _line(facts: Facts) -> Line | None:
    try:
        return longest_line(facts.profile, "consumer" if facts.alone else "worker")
    except NotMeasuredError:
        return None


def _maybe_threads(facts: Facts, line: Line) -> bool:
    """A worker that waits inside its own process, in code that shows no lock: a library that
    computes with several threads waits for them in the same way."""
    if line.shared or line.held is not None or facts.alone:
        return False
    return not told_by_code(facts.profile.calls).locks


def _waiting(line: Line) -> str:
    place = line.waiting
    share = plus_minus(100 * place.fraction, max(1.0, 100 * place.error), 1)
    each = f"; one wait lasts {seconds(place.mean_wait_s, 2)}" if place.mean_wait_s > 0 else ""
    return f"{share} % of that line is in {place.where}{each}."


def _holding(line: Line) -> tuple[str, ...]:
    held = line.held
    if held is None:
        return ()
    where = f", in {held.where}" if held.where else ""
    return (
        f"Whoever has the lock {held.doing}{where} ({percent(held.fraction)} of the instants at "
        "which only one can have it).",
    )


def _advice(line: Line) -> str:
    held = line.held
    inside = f" {held.where}" if held is not None and held.where else " what is done with the lock"
    if held is not None and held.state == "running":
        move = f"Do{inside} before or after the lock is taken, or without it."
    else:
        move = f"Take{inside} out of the lock, so that the others need not wait for it."
    own = (
        "Give every worker its own file handle, connection or cache, so that no lock is needed. "
        if line.shared
        else "Give every thread its own file handle, connection or cache, or use worker processes. "
    )
    return f"{own}{move} More workers only make the line longer."


RULE = Rule("lock", judge)
