"""The process is pinned to fewer cores than the machine would give it."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import significant

_PINNING = ("OMP_PROC_BIND", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")


def judge(facts: Facts) -> Finding | None:
    """Time in line for a core while other cores of the machine may not be used, where something
    took them away: the process that started this one may use more."""
    machine = facts.profile.machine
    own, others = machine.cpus_usable, machine.cpus_of_parent
    if not facts.batches or not 0 < own < others:
        return None
    quota = machine.cpu_quota
    if quota and quota <= own:
        return None
    return finding(
        facts,
        facts.gain_queue().times(facts.own_part_of_line),
        cause="affinity",
        resource="run_queue",
        title=f"This process is pinned to {own} of the {others} cores it could use",
        evidence=(
            f"On average {significant(facts.runnable, 2)} threads wanted to run on "
            f"{_words.cores_text(facts)}.",
            _words.part_line(facts, "run_queue"),
            *(
                f"{name}={value} is set."
                for name, value in machine.native_threads
                if name in _PINNING
            ),
        ),
        advice="Give the cores back before the loader is made: os.sched_setaffinity(0, "
        f"range({machine.cpus})). A library may have pinned the process when it was imported "
        "(OMP_PROC_BIND and GOMP_CPU_AFFINITY make OpenMP do so), or taskset, numactl or the "
        "scheduler of the cluster when it was started.",
        refines=("too_many_workers", "cores_taken"),
    )


RULE = Rule("affinity", judge)
