"""Ceilings of those who fetch: the worker pool, its order, the cores, the GIL."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean

from jupyter_ioscope.diagnosis.ceilings_row import (
    as_full_batches,
    ceiling,
    cpu_beside_s,
    many,
    relative_error,
    steady_batches,
    steady_fetches,
)
from jupyter_ioscope.diagnosis.cycles import Without, in_order
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.throughput import ENOUGH, throughput_of, warm_up
from jupyter_ioscope.model.diagnosis import Ceiling
from jupyter_ioscope.units import seconds, significant

# Waiting for one another is a ceiling of its own from this part of the pool's time on.
_ORDER_COSTS = 0.03
# Other programs' use of the cores below this part of them is noise.
_LEAST_TAKEN = 0.05
# A GIL that was never asked for by two is no limit: time in line, as part of the fetches.
_LEAST_IN_LINE = 0.02


def worker_pool(facts: Facts) -> Ceiling | None:
    """The fetches, over the number of workers that get any work."""
    fetches = [row.fetch_ns / 1e9 for row in steady_fetches(facts)]
    service = fmean(fetches)
    if facts.alone:
        how = f"One fetch takes {seconds(service)} in the loop's own process."
        return ceiling(facts, "worker_pool", "fetching", service, relative_error(fetches), how)
    workers = max(1, facts.workers - facts.workers_without_work)
    service += _put_s(facts)
    without = facts.workers - workers
    how = f"{many(workers, 'worker')}, each {seconds(service)} for a batch, were they never idle."
    if without > 0:
        how += f" {many(without, 'other', 'others')} got no work."
    label = many(workers, "worker")
    relative = relative_error(fetches)
    return ceiling(facts, "worker_pool", label, service / workers, relative, how)


def _put_s(facts: Facts) -> float:
    """A worker's own time after each fetch."""
    served = [row for row in facts.fetches if row.worker >= 0]
    return facts.part_ns("hand_over") / as_full_batches(facts, len(served)) / 1e9


def order(facts: Facts) -> Ceiling | None:
    """The same workers, delivering in order and only so far ahead as they may prefetch: the loop
    model without any cost of the loop's own. Only where that costs something."""
    if facts.alone or not facts.loader.in_order:
        return None
    gaps: list[float] = []
    replay = facts.replay
    for epoch in replay.epochs:
        turns = [turn._replace(main=0.0, transit=0.0) for turn in epoch]
        ends = in_order(turns, replay.credits, Without(step=1.0))
        skip = warm_up(facts)
        if len(ends) >= skip + ENOUGH:
            gaps += [(b - a) / 1e9 for a, b in pairwise(ends[skip - 1 :])]
    pool = worker_pool(facts)
    if not gaps or pool is None:
        return None
    per_batch = fmean(gaps)
    if per_batch * pool.samples_per_s < (1 + _ORDER_COSTS) * facts.full_batch:
        return None
    ahead = replay.credits // max(1, facts.workers)
    how = (
        f"Batches come in order, and each worker is at most {many(ahead, 'batch', 'batches')} "
        f"ahead: one batch every {seconds(per_batch)}."
    )
    return ceiling(facts, "order", "workers in order", per_batch, relative_error(gaps), how)


def cpu(facts: Facts) -> Ceiling | None:
    """Usable cores (affinity and quota) over the CPU that all processes use for a batch."""
    per_batch, error = _cpu_a_batch(facts)
    cores = many(round(facts.cores, 2), "core")
    quota = facts.profile.machine.cpu_quota
    why = " (the container's quota)" if quota and quota <= facts.cores else ""
    how = f"A batch uses {seconds(per_batch)} of CPU in all processes; {cores} may be used{why}."
    return ceiling(facts, "cpu", f"CPU ({cores})", per_batch / facts.cores, error, how)


def cpu_left(facts: Facts) -> Ceiling | None:
    """The same with the cores that other programs left."""
    taken = facts.taken_cores
    if taken < _LEAST_TAKEN * facts.cores:
        return None
    per_batch, error = _cpu_a_batch(facts)
    reached = throughput_of(facts)
    used = per_batch * reached.batches_per_s if reached else 0.0
    left = max(facts.cores - taken, used)  # the loop did run on that much
    if left <= 0:
        return None
    how = (
        f"Other programs used {significant(taken, 2)} of {many(round(facts.cores, 2), 'core')}; "
        f"a batch uses {seconds(per_batch)} of CPU."
    )
    # what others used is a mean over the profile, in ticks of 10 ms, of cores they may have shared
    error = max(error or 0.0, 0.1)
    label = f"CPU others left ({significant(left, 2)})"
    return ceiling(facts, "cpu_left", label, per_batch / left, error, how)


def _cpu_a_batch(facts: Facts) -> tuple[float, float | None]:
    """CPU seconds of all processes for a batch, and its relative standard error."""
    batches = steady_batches(facts)
    main = fmean((row.wait_cpu_ns + row.step_cpu_ns) / 1e9 for row in batches)
    helpers = [row for row in facts.profile.threads if row.role not in ("consumer", "worker")]
    beside = cpu_beside_s(facts, helpers)
    if facts.alone:
        used = [(row.wait_cpu_ns + row.step_cpu_ns) / 1e9 for row in batches]
        return main + beside, relative_error(used)
    if not any(row.worker >= 0 for row in facts.profile.fetches):
        count = as_full_batches(facts, len(facts.profile.batches))
        return facts.tree_cpu_ns / count / 1e9, None
    fetched = [row.cpu_ns / 1e9 for row in steady_fetches(facts)]
    return fmean(fetched) + _put_s(facts) + main + beside, relative_error(fetched)


def gil(facts: Facts) -> Ceiling | None:
    """The Python work of all threads of a process has to pass through one lock: of the loop's
    process where it fetches for itself, else of every worker. Only where threads stood in line for
    it. Native code may let go of the lock while it works, so this is the most that it can cost."""
    facts.need_states()
    fetch_ns = sum(row.wall_ns - row.part_ns("idle") for row in facts.fetching)
    if facts.part_ns("gil") <= _LEAST_IN_LINE * fetch_ns:
        return None
    if facts.alone:
        pid = facts.profile.pid
        rows = [row for row in facts.profile.threads if row.pid == pid and row.role != "consumer"]
        own = sum(row.wait_cpu_ns + row.step_cpu_ns for row in facts.profile.batches)
        count = as_full_batches(facts, len(facts.profile.batches))
        per_batch = own / count / 1e9 + cpu_beside_s(facts, rows)
        how = f"All threads of this process use {seconds(per_batch)} a batch, one at a time."
        return ceiling(facts, "gil", "GIL", per_batch, None, how)
    pids = {row.pid for row in facts.fetches}
    rows = [row for row in facts.profile.threads if row.pid in pids and row.role != "worker"]
    own = sum(row.cpu_ns for row in facts.fetches)
    count = as_full_batches(facts, len(facts.fetches))
    per_batch = own / count / 1e9 + cpu_beside_s(facts, rows)
    how = f"All threads of a worker use {seconds(per_batch)} a batch, one at a time."
    workers = max(1, facts.workers - facts.workers_without_work)
    return ceiling(facts, "gil", "GIL of each worker", per_batch / workers, None, how)
