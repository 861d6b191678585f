"""Python's garbage collector walks many objects, again and again."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.cycles import Without
from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.phases import Interval, clip, intersect_ns, total_ns, union
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent, seconds


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
        ),
        advice="Call gc.collect() and gc.freeze() once after everything is loaded (in workers: in "
        "worker_init_fn), or gc.disable() for the loop and gc.collect() between epochs. Arrays "
        "instead of lists and dicts of Python objects leave it nothing to walk.",
        refines=(
            "not_loader_bound",
            "step_overhead",
            "no_workers_cpu_bound",
            "decode_cpu",
            "slow_collate",
        ),
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
