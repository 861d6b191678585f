"""What the fetching threads were in the middle of: waiting for a task, fetching, collating,
putting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jupyter_ioscope.diagnosis.phases import Lookup
from jupyter_ioscope.diagnosis.spread import ratio_error
from jupyter_ioscope.model.diagnosis import WORKER_PHASES, Phase, ThreadWaits
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES
from jupyter_ioscope.model.records import Fetch

_RUNNING = STATES.index("running")


def worker_phases(
    profile: Profile, consumer: ThreadWaits | None, workers: Sequence[ThreadWaits]
) -> tuple[Phase, ...]:
    """Phases of all workers together, or of the consumer's own fetches without workers (then there
    is no waiting for a task and no put); none where no fetch was recorded.

    Lengths of fetch and collate are recorded, so is the CPU of both together; it is divided between
    them by the samples in which the thread ran. What a worker uses of a core after a fetch is the
    put; the rest of its time it had no task. Nothing is known of the put without the sampler.
    """
    served = [row for row in profile.fetches if row.worker >= 0]
    fetches = served or list(profile.fetches)
    if not fetches:
        return ()
    whole_ns = sum(row.fetch_ns for row in fetches)
    collate_ns = sum(min(row.collate_ns, row.fetch_ns) for row in fetches)
    cpu_ns = sum(min(row.cpu_ns, row.fetch_ns) for row in fetches)
    part, error = _collate_part(profile, fetches, collate_ns / whole_ns if whole_ns else 0.0)
    part = min(part, collate_ns / cpu_ns) if cpu_ns else 0.0
    part = max(part, 1 - (whole_ns - collate_ns) / cpu_ns) if cpu_ns else 0.0
    found = {
        "fetch": (whole_ns - collate_ns, int(cpu_ns * (1 - part)), int(cpu_ns * error)),
        "collate": (collate_ns, int(cpu_ns * part), int(cpu_ns * error)),
    }
    if served:
        found.update(_outside(workers, whole_ns))
    elif consumer is None:
        return ()
    return tuple(Phase(name, *found[name]) for name in WORKER_PHASES if name in found)


def _outside(workers: Iterable[ThreadWaits], whole_ns: int) -> dict[str, tuple[int, int, int]]:
    """Time of the workers outside fetches, so that all phases sum to the workers' wall time."""
    rows = list(workers)
    start_ns = sum(row.part_ns("start_up") for row in rows)
    left_ns = max(0, sum(row.wall_ns for row in rows) - start_ns - whole_ns)
    put_ns = min(left_ns, sum(row.part_ns("hand_over") for row in rows))
    return {
        "start_up": (start_ns, 0, 0),
        "index_wait": (left_ns - put_ns, 0, 0),
        "put": (put_ns, put_ns, 0),
    }


def _collate_part(
    profile: Profile, fetches: Sequence[Fetch], by_length: float
) -> tuple[float, float]:
    """Part of the fetches' running samples that fell into the collate, with its standard error
    (one fetch is one draw). By length where the threads were hardly seen running."""
    by_pid: dict[int, list[Fetch]] = {}
    for row in fetches:
        by_pid.setdefault(row.pid, []).append(row)
    hits: list[float] = []
    sizes: list[float] = []
    for thread in profile.threads:
        rows = by_pid.get(thread.pid, []) if thread.role in ("worker", "consumer") else []
        rows.sort(key=lambda row: row.start_ns)
        lookup = Lookup([(row.start_ns, row.end_ns) for row in rows])
        seen: dict[int, list[int]] = {}
        for time_ns, state in zip(thread.sample_ns, thread.states, strict=False):
            at = lookup.index(time_ns) if state == _RUNNING else -1
            if at >= 0:
                counts = seen.setdefault(at, [0, 0])
                counts[0] += 1
                counts[1] += time_ns >= rows[at].end_ns - rows[at].collate_ns
        sizes += [float(count) for count, _ in seen.values()]
        hits += [float(count) for _, count in seen.values()]
    if sum(sizes) < 10:
        return by_length, by_length / 2
    return sum(hits) / sum(sizes), ratio_error(hits, sizes) or by_length / 2
