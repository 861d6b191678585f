"""Python's garbage collector walks many objects, again and again."""

from __future__ import annotations

from collections import Counter

from jupyter_ioscope.diagnosis.cycles import Without
from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.memory_facts import COLLECTION_BYTES, copied_by_workers
from jupyter_ioscope.diagnosis.phases import Interval, clip, intersect_ns, total_ns, union
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.readings import Frame
from jupyter_ioscope.units import bytes_text, percent, seconds


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if the collector never ran. Pauses in this process stop the step,
    and fetching where there are no workers; pauses in workers lengthen their fetches."""
    if not facts.batches or not facts.profile.gc_pauses:
        return None
    own, served = _own(facts), _served_fraction(facts)
    without = Without(cpu=served, off_cpu=served)
    gains = [own, facts.gain(without) if served else Gain(0.0, 0.0, 0.0)]
    share = min(1.0, sum(gain.share for gain in gains))
    gain = Gain(share, sum(row.low for row in gains), min(1.0, sum(row.high for row in gains)))
    rows = facts.profile.gc_pauses
    called = _called_in(facts)
    mean_s = sum(row.end_ns - row.start_ns for row in rows) / len(rows) / 1e9
    return finding(
        facts,
        gain,
        cause="gc_pauses",
        resource="consumer" if own.share >= 0.5 * share else "worker_cpu",
        title="Python's garbage collector interrupts the loop",
        evidence=(
            f"It ran {len(rows):,} times for {seconds(mean_s)} on average: it walks all objects "
            "that live, however old they are.",
            f"{percent(own.share)} of the loop's time passed so in this process."
            if own.share
            else "",
            f"{percent(served)} of the fetches' time in the workers." if served else "",
            _copied(facts),
            f"gc.collect() is called in {called}." if called else "",
        ),
        advice=_advice(called, facts.alone),
        refines=(
            "not_loader_bound",
            "step_overhead",
            "no_workers_cpu_bound",
            "decode_cpu",
            "slow_collate",
        ),
    )


def _advice(called: str, alone: bool) -> str:
    started = "" if alone else " and before the workers are started (they inherit it)"
    once = (
        f"Call gc.collect() and gc.freeze() once after everything is loaded{started}, or "
        "gc.disable() for the loop and gc.collect() between epochs. Arrays instead of lists and "
        "dicts of Python objects leave it nothing to walk."
    )
    if not called:
        return once
    return (
        f"Take the gc.collect() out of {called}, or call it once an epoch: Python collects by "
        f"itself when it is worth it. Where memory grows without it: {once[0].lower()}{once[1:]}"
    )


def _called_in(facts: Facts) -> str:
    """The user's line that asks for collections, where most of those that were seen stand; empty
    where Python began them by itself."""
    stacks = facts.profile.stacks
    lines = {(row.file, row.line) for row in facts.profile.calls if "gc.collect" in row.names}
    counts: Counter[Frame] = Counter()
    for stack in stacks.stacks if stacks is not None and lines else ():
        frames = [stacks.frames[i] for i in stack.frames if i < len(stacks.frames)]  # type: ignore[union-attr]
        if frames and (frames[-1].file, frames[-1].line) in lines:
            counts[frames[-1]] += stack.count
    if not counts:
        return ""
    place = counts.most_common(1)[0][0]
    return f"{place.name} in {place.file}, line {place.line}"


def _copied(facts: Facts) -> str:
    """What it copied into forked workers; empty where that is little or not known."""
    try:
        copied = copied_by_workers(facts.profile)
    except NotMeasuredError:
        return ""
    if copied.collected_bytes < COLLECTION_BYTES:
        return ""
    return (
        f"It also copied {bytes_text(copied.collected_bytes)} of memory that the workers shared "
        "with this process: it writes to every object it looks at."
    )


def _own(facts: Facts) -> Gain:
    """Pauses of this process that the loop had to sit out."""
    pid = facts.profile.pid
    pauses = union((r.start_ns, r.end_ns) for r in facts.profile.gc_pauses if r.pid == pid)
    loop = facts.loop
    pauses = union(clip(pauses, loop.start_ns, loop.end_ns))
    waits = [] if facts.alone else union(loop.waits)
    stood_ns = total_ns(pauses) - intersect_ns(pauses, waits)
    if facts.alone:
        return Gain.of(min(1.0, stood_ns / loop.wall_ns), 0.0)
    steps_ns = max(1, loop.step_ns)
    return facts.gain(Without(step=min(1.0, stood_ns / steps_ns)))


def _served_fraction(facts: Facts) -> float:
    """Part of the workers' fetches that went into pauses, with the waits for a core in both."""
    fetches: dict[int, list[Interval]] = {}
    fetch_ns = 0
    for row in facts.profile.fetches:
        if row.worker >= 0:
            fetches.setdefault(row.pid, []).append((row.start_ns, row.end_ns))
            fetch_ns += row.fetch_ns
    pauses: dict[int, list[Interval]] = {}
    for pause in facts.profile.gc_pauses:
        if pause.pid in fetches:
            pauses.setdefault(pause.pid, []).append((pause.start_ns, pause.end_ns))
    lost = sum(intersect_ns(union(rows), union(fetches[pid])) for pid, rows in pauses.items())
    return min(1.0, lost / fetch_ns) if fetch_ns else 0.0


RULE = Rule("gc_pauses", judge)
