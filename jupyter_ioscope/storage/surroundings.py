"""Where this process runs: plain, or in Docker, Kubernetes, Slurm; by what each leaves behind."""

from __future__ import annotations

import os
from collections.abc import Mapping

from jupyter_ioscope.storage.cgroups import Groups

PLAIN = "plain"


def place(groups: Groups, environment: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """(name, evidence). A Slurm job in a container is told as both.

    Sources: Kubernetes sets KUBERNETES_SERVICE_HOST in every container; Docker makes /.dockerenv,
    Podman /run/.containerenv; Slurm sets SLURM_JOB_ID; all of them name their control groups.
    """
    names, found = groups.names(), []
    slurm = environment.get("SLURM_JOB_ID", "")
    if slurm.isdigit():
        found.append(("Slurm", f"SLURM_JOB_ID is {slurm}"))
    elif "/slurm" in names:
        found.append(("Slurm", "a control group of this process is named slurm"))
    if environment.get("KUBERNETES_SERVICE_HOST"):
        found.append(("Kubernetes", "KUBERNETES_SERVICE_HOST is set"))
    elif "kubepods" in names:
        found.append(("Kubernetes", "a control group of this process is named kubepods"))
    elif groups.exists(".dockerenv"):
        found.append(("Docker", "there is /.dockerenv"))
    elif "/docker" in names:
        found.append(("Docker", "a control group of this process is named docker"))
    elif groups.exists("run/.containerenv"):
        found.append(("Podman", "there is /run/.containerenv"))
    if not found:
        return PLAIN, ()
    return " in ".join(name for name, _ in found), tuple(text for _, text in found)


def slurm_cores(environment: Mapping[str, str]) -> int:
    """Cores that Slurm gives to each task; 0 where it does not say."""
    text = environment.get("SLURM_CPUS_PER_TASK", "")
    return int(text) if text.isdigit() else 0


def slurm_memory(environment: Mapping[str, str]) -> tuple[int, str] | None:
    """(bytes that the job may take on this machine, which variable says so); None if none does.

    sbatch(1): SLURM_MEM_PER_NODE and SLURM_MEM_PER_CPU are in units of 2**20 bytes, set by --mem
    and --mem-per-cpu; 0 asks for all there is.
    """
    cpus = environment.get("SLURM_CPUS_ON_NODE", "")
    for name, times in (("SLURM_MEM_PER_NODE", "1"), ("SLURM_MEM_PER_CPU", cpus)):
        text = environment.get(name, "")
        if text.isdigit() and times.isdigit() and int(text) * int(times):
            return int(text) * int(times) << 20, name
    return None


def numa_nodes(groups: Groups, cores: set[int]) -> tuple[tuple[str, int], ...]:
    """(node, cores of it that this process may use), for nodes with any."""
    found = []
    for name in groups.listed("sys/devices/system/node"):
        if name.startswith("node") and name[4:].isdigit():
            text = groups.text(f"sys/devices/system/node/{name}/cpulist").strip()
            own = len(cores & _numbers(text))
            if own:
                found.append((name, own))
    return tuple(sorted(found, key=lambda row: int(row[0][4:])))


def memory(groups: Groups) -> tuple[int, int]:
    """(all, available) bytes of the machine's memory, by proc_meminfo(5); -1 where unknown."""
    found = {}
    for line in groups.text("proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        number = rest.split()[:1]
        if number and number[0].isdigit():
            found[name] = int(number[0]) * 1024
    return found.get("MemTotal", -1), found.get("MemAvailable", -1)


def _numbers(text: str) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (last.isdigit() or not last):
            found.update(range(int(first), int(last or first) + 1))
    return found


def affinity() -> set[int]:
    """The cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))
