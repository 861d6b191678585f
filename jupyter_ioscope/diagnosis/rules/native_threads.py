"""The loop makes its samples with a library that was told to use one thread."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.native_libraries import SwitchedOff, switched_off
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.spread import together
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent, plus_minus, significant

# The call must be where most of the fetching is, and a core must be free for another thread.
LEAST_IN_CALLS = 0.3


def judge(facts: Facts) -> Finding | None:
    """CPU of that call, as the general causes count CPU: all of it. What sharing it out over the
    cores leaves of it is the lower end. Only without workers: in workers one thread is right."""
    if not facts.alone or facts.cores < 2 or _words.cores_full(facts):
        return None
    calls = facts.work.calls or {}
    found = next(
        (
            off
            for row in facts.work.seen
            for off in (_off(facts, calls.get((row.place.file, row.place.line), ())),)
            if off is not None
        ),
        None,
    )
    if found is None:
        return None
    library = found.library
    part, error = facts.work.part(
        lambda row: (
            (off := _off(facts, calls.get((row.place.file, row.place.line), ()))) is not None
            and off.library == library
        )
    )
    if part < LEAST_IN_CALLS:
        return None
    gain, most = facts.gain_cpu(part), facts.gain_cpu(min(1.0, part + error))
    half = together(gain.high - gain.share, most.share - gain.share)
    least = max(0.0, gain.share * (1 - 1 / facts.cores) - half)
    return finding(
        facts,
        gain._replace(low=least, high=min(1.0, gain.share + half)),
        cause="native_threads_off",
        resource="main_cpu",
        title=f"{library} was told to use one thread",
        evidence=(
            f"{found.setting} is set, and {plus_minus(100 * part, 100 * error, 1)} % of the "
            f"fetching is in lines that call {found.call.lstrip('.')}.",
            f"The loop used {significant(facts.tree_cpu_ns / facts.loop.wall_ns, 2)} of "
            f"{_words.cores_text(facts)}; shared out, that work would take "
            f"{percent(1 / facts.cores)} of its time at best.",
            _words.where_line(facts),
        ),
        advice=f"Let {library} use all cores: {found.remedy}, before it is first used. "
        "Or use workers with one thread each: then every worker keeps a core busy.",
        toggles=("workers",) if _words.more_workers(facts) else (),
        where=facts.where(),
        refines=("no_workers_cpu_bound", "decode_cpu"),
    )


def _off(facts: Facts, calls: tuple[str, ...]) -> SwitchedOff | None:
    return switched_off(facts.profile.machine, calls) if calls else None


RULE = Rule("native_threads", judge)
