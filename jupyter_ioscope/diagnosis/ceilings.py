"""The throughput that each resource alone would allow."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.spread import Z95, block_ratio_error
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Ceiling
from jupyter_ioscope.units import seconds

# One standard error, relative, of a mean about whose spread nothing is known.
UNKNOWN_RELATIVE = 0.25


def ceilings_of(facts: Facts) -> tuple[Ceiling, ...]:
    """Ceilings that this profile can tell, lowest first. One that was not measured is left out."""
    found: list[Ceiling] = []
    makers: tuple[Callable[[Facts], Ceiling | None], ...] = (
        _consumer,
        _worker_pool,
        _cpu,
        _storage,
        _hand_over,
        _gil,
    )
    for make in makers:
        try:
            ceiling = make(facts)
        except NotMeasuredError:
            continue
        if ceiling is not None:
            found.append(ceiling)
    return tuple(sorted(found, key=lambda row: row.samples_per_s))


def _ceiling(
    facts: Facts, resource: str, label: str, per_batch_s: float, relative: float | None, how: str
) -> Ceiling | None:
    """A ceiling of one batch every `per_batch_s`; `relative` is its standard error over it."""
    if per_batch_s <= 0:
        return None
    rate = facts.samples_per_batch / per_batch_s
    half = Z95 * (UNKNOWN_RELATIVE if relative is None else relative)
    low, high = rate / (1 + half), rate / max(0.05, 1 - half)
    return Ceiling(resource, label, rate, low, high, how)


def _relative(values: list[float]) -> float | None:
    """Standard error of the mean over the mean, from blocks of neighbouring values."""
    error = block_ratio_error(values, [1.0] * len(values))
    whole = mean(values) if values else 0.0
    return error / whole if error is not None and whole else None


def _consumer(facts: Facts) -> Ceiling | None:
    steps = [row.step_ns / 1e9 for row in facts.batches]
    if not steps:
        return None
    how = f"One step takes {seconds(mean(steps))}; nothing else would have to be waited for."
    return _ceiling(facts, "consumer", "your step", mean(steps), _relative(steps), how)


def _worker_pool(facts: Facts) -> Ceiling | None:
    fetches = [row.fetch_ns / 1e9 for row in facts.fetches]
    service = mean(fetches)
    if facts.alone:
        how = f"One fetch takes {seconds(service)} in the loop's own process."
        return _ceiling(facts, "worker_pool", "fetching", service, _relative(fetches), how)
    workers = max(1, facts.workers)
    service += facts.part_ns("hand_over") / max(1, len(facts.fetches)) / 1e9
    how = f"{workers} workers, each {seconds(service)} for a batch, were they never idle."
    label = "1 worker" if workers == 1 else f"{workers} workers"
    return _ceiling(facts, "worker_pool", label, service / workers, _relative(fetches), how)


def _cpu(facts: Facts) -> Ceiling | None:
    """Usable cores over the CPU seconds that loop and workers use for a batch."""
    if not facts.batches:
        return None
    per_batch = facts.tree_cpu_ns / len(facts.profile.batches) / 1e9
    used = [float(row.cpu_ns) for row in facts.fetches]
    cores = f"{facts.cores:g} core{'' if facts.cores == 1 else 's'}"
    how = f"A batch uses {seconds(per_batch)} of CPU in all processes; {cores} may be used."
    label = f"CPU ({cores})"
    return _ceiling(facts, "cpu", label, per_batch / facts.cores, _relative(used), how)


def _storage(facts: Facts) -> Ceiling | None:
    """As many readers as now, waiting for nothing but the disk."""
    facts.need_states()
    disk_ns = facts.part_ns("disk") + facts.part_ns("page_fault")
    batches = len(facts.profile.fetches)
    if not disk_ns or not batches:
        return None
    readers = 1 if facts.alone else max(1, facts.workers)
    rows = [p for row in facts.fetching for p in row.parts if p.name in ("disk", "page_fault")]
    error = sum(p.error_ns**2 for p in rows) ** 0.5 / disk_ns
    per_batch = disk_ns / batches / 1e9
    how = (
        f"A batch waits {seconds(per_batch)} for the disk, with {readers} "
        f"reader{'' if readers == 1 else 's'} at a time."
    )
    return _ceiling(facts, "storage", "storage", per_batch / readers, error, how)


def _hand_over(facts: Facts) -> Ceiling | None:
    """What the main process itself does for every batch, whoever fetched it."""
    if facts.alone:
        return None
    costs = [turn.main / 1e9 for epoch in facts.replay.epochs for turn in epoch]
    how = f"Taking over a batch costs the main process {seconds(mean(costs))}."
    return _ceiling(facts, "hand_over", "hand-over", mean(costs), _relative(costs), how)


def _gil(facts: Facts) -> Ceiling | None:
    """Only where threads were seen waiting for the GIL of the loop's process: the Python work of
    all its threads has to pass through one lock."""
    facts.need_states()
    if not facts.alone or not facts.part_ns("gil"):
        return None
    pid = facts.profile.pid
    rows = [row for row in facts.profile.threads if row.pid == pid and row.role != "consumer"]
    own = sum(row.wait_cpu_ns + row.step_cpu_ns for row in facts.profile.batches)
    per_batch = (own + sum(row.run_ns for row in rows)) / len(facts.profile.batches) / 1e9
    how = f"All threads of this process use {seconds(per_batch)} a batch, one at a time."
    return _ceiling(facts, "gil", "GIL", per_batch, None, how)
