"""The process, or its workers, are pinned to fewer cores than the machine would give them."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import significant

_PINNING = ("OMP_PROC_BIND", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")


def judge(facts: Facts) -> Finding | None:
    """Time in line for a core while other cores of the machine may not be used, where something
    took them away: the process that started this one may use more, or this one than its workers.
    """
    if not facts.batches:
        return None
    return _of_process(facts) or _of_workers(facts)


def _of_process(facts: Facts) -> Finding | None:
    machine = facts.profile.machine
    own, others = machine.cpus_usable, machine.cpus_of_parent
    if not 0 < own < others:
        return None
    quota = machine.cpu_quota
    if quota and quota <= own:
        return None
    return _finding(
        facts,
        facts.own_part_of_line,
        f"This process is pinned to {own} of the {others} cores it could use",
        tuple(f"{name}={value} is set." for name, value in machine.native_threads
              if name in _PINNING),
        "Give the cores back before the loader is made: os.sched_setaffinity(0, "
        f"range({machine.cpus})). A library may have pinned the process when it was imported "
        "(OMP_PROC_BIND and GOMP_CPU_AFFINITY make OpenMP do so), or taskset, numactl or the "
        "scheduler of the cluster when it was started.",
    )  # fmt: skip


def _of_workers(facts: Facts) -> Finding | None:
    """Workers share fewer cores than there are workers, and than this process may use. Workers that
    are bound to a core each have what they need."""
    fetching = {row.pid for row in facts.profile.fetches if row.worker >= 0}
    rows = [use for use in facts.profile.processes if use.pid in fetching]
    cores = {core for use in rows for core in use.bound_to}
    fitting = min(facts.workers, facts.profile.machine.cpus_usable)
    if not rows or not all(use.bound_to for use in rows) or len(cores) >= fitting:
        return None
    workers = "The worker is" if facts.workers == 1 else f"The {facts.workers} workers are"
    listed = ", ".join(map(str, sorted(cores)))
    # Nobody of the loop's own is in the way on cores of one's own, and of what other programs take
    # there is less where there are more cores to choose from.
    own = facts.own_part_of_line
    freed = own + (1 - own) * (1 - len(cores) / fitting)
    return _finding(
        facts,
        freed,
        f"{workers} pinned to {len(cores)} of the {facts.profile.machine.cpus_usable} cores",
        (f"All of them may use core {listed} only." if len(cores) == 1
         else f"They may use the cores {listed} only.",),
        "Let the workers use all cores: leave os.sched_setaffinity (or psutil's cpu_affinity) out "
        "of worker_init_fn and of what it calls, or give worker k a core of its own "
        "(sorted(os.sched_getaffinity(0))[k]).",
    )  # fmt: skip


def _finding(
    facts: Facts, freed: float, title: str, evidence: tuple[str, ...], advice: str
) -> Finding:
    """`freed` is the part of the time in line that the missing cores would save."""
    return finding(
        facts,
        facts.gain_queue().times(freed),
        cause="affinity",
        resource="run_queue",
        title=title,
        evidence=(
            f"On average {significant(facts.runnable, 2)} threads wanted to run on "
            f"{_words.cores_text(facts)}.",
            _words.part_line(facts, "run_queue"),
            *evidence,
        ),
        advice=advice,
        refines=("too_many_workers", "cores_taken"),
    )


RULE = Rule("affinity", judge)
