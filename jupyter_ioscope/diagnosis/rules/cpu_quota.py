"""A CPU quota gives fewer cores than the machine shows."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.rules.oversubscribed import CROWDED
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent, significant

# A quota is enforced in periods of 100 ms: a burst may be held back in a few of them.
LEAST_HELD = 0.1
# Of the time in which threads fetch: less is no line that needs a reason.
LEAST_IN_LINE = 0.3


def judge(facts: Facts) -> Finding | None:
    """Time in line for a core that the quota makes: threads that are held back stand in the run
    queue. Without the quota, those would stand there who are more than the machine has cores."""
    quota, cores = facts.profile.machine.cpu_quota, facts.profile.machine.cpus_usable
    if not facts.batches or not quota or quota >= cores:
        return None
    held = _held(facts, quota, cores)
    if held is not None and held < LEAST_HELD:
        return None
    line = max(1e-9, facts.runnable - quota)
    still = min(1.0, max(0.0, facts.runnable - cores) / line)
    gain = facts.gain_queue().times(facts.own_part_of_line * (1 - still))
    if held is None:  # other programs may have held them back as well
        gain = gain._replace(low=gain.low / 2)
    return finding(
        facts,
        gain,
        cause="cpu_quota",
        resource="run_queue",
        title=f"A CPU quota of {significant(quota, 2)} cores holds the loop back, on a machine "
        f"that shows {cores}",
        evidence=(
            f"On average {significant(facts.runnable, 2)} threads wanted to run on "
            f"{_words.cores_text(facts)}; "
            + (
                f"the quota held them back for at least {percent(held)} of the time that they "
                "stood in line for a core."
                if held is not None
                else f"without the quota there would be {cores}."
            ),
            _words.part_line(facts, "run_queue"),
        ),
        advice=f"Ask for a larger CPU quota. Until then use {_workers(quota)} with one thread "
        "each (torch.set_num_threads(1)): libraries that count the machine's "
        f"{cores} cores start too many threads, and all of them are held back together.",
        refines=("too_many_workers", "cores_taken"),
    )


def _held(facts: Facts, quota: float, cores: int) -> float | None:
    """`held_fraction`; None where nothing counted it, but threads stand in line, many more than the
    quota allows, and the machine has a core for each. Raises NotMeasuredError otherwise."""
    try:
        return held_fraction(facts)
    except NotMeasuredError:
        in_line = facts.busy_fraction("run_queue") >= LEAST_IN_LINE
        if in_line and CROWDED * quota < facts.runnable <= cores:
            return None
        raise


def _workers(quota: float) -> str:
    count = max(1, int(quota))
    return "1 worker" if count == 1 else f"{count} workers"


def held_fraction(facts: Facts) -> float:
    """Of the run-queue time of all threads, the part in which the quota held them back.

    The kernel adds up, over the cores, how long the group's threads on a core were held back
    (`throttled_usec` of cgroup v2, `throttled_time` of v1): at least one thread waits for that long
    in each.
    """
    series = facts.profile.series.get("cgroup_throttled_ns")
    waiting_ns = sum(row.run_queue_ns for row in facts.profile.threads)
    if series is None or not waiting_ns:
        raise NotMeasuredError("how long the CPU quota held threads back", "nothing counted it")
    return min(1.0, series.total() / waiting_ns)


RULE = Rule("cpu_quota", judge)
