"""Who wanted the cores: this loop, other programs, and the container's quota."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Demand
from jupyter_ioscope.model.readings import Series


def demand_of(facts: Facts) -> Demand | None:
    """Mean use of the cores over the loop (other programs: over the profile); None without a loop.

    A number that was not measured is None, the others stay.
    """
    try:
        wall_ns = facts.loop.wall_ns
    except NotMeasuredError:
        return None
    threads = facts.profile.threads
    waiting = sum(row.run_queue_ns for row in threads) / wall_ns
    held = facts.profile.series.get("cgroup_throttled_ns")
    periods = facts.profile.series.get("cgroup_throttled_periods")
    return Demand(
        cores=facts.cores,
        own=min(facts.tree_cpu_ns / wall_ns, float(max(1, facts.profile.machine.cpus))),
        others=_others(facts),
        waiting=waiting if any(row.exact for row in threads) else None,
        throttled_s=None if held is None else max(0.0, held.total()) / 1e9,
        throttled_periods=_whole(periods),
    )


def _others(facts: Facts) -> float | None:
    try:
        return facts.taken_cores
    except NotMeasuredError:
        return None


def _whole(series: Series | None) -> int | None:
    return None if series is None else int(max(0.0, series.total()))
