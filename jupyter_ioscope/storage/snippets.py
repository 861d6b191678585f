"""Container configuration to copy, in which every number says where it comes from.

What is not known is a name in capitals, with what to put there. Docker gives 64 MB of /dev/shm
unless told otherwise (docker run --shm-size); in Kubernetes an emptyDir in memory takes its place,
and counts as memory used.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

from jupyter_ioscope.model.storage import Limit, Snippet
from jupyter_ioscope.storage.loader_needs import Needs
from jupyter_ioscope.units import NBSP, bytes_text

_GB, _MB = 10**9, 10**6


class Ask(NamedTuple):
    """What a snippet asks for. `memory_limit` is the one of now; `few` are limits that are tight
    now (open files, processes and threads), with what to ask for instead."""

    cores: float
    cores_from: str
    workers: int
    needs: Needs
    memory_limit: Limit | None = None
    few: Collection[tuple[str, int]] = ()


def snippets(place: str, ask: Ask) -> tuple[Snippet, ...]:
    """How to ask for what a loader needs; that of the place itself comes first."""
    docker = _docker(ask, "podman" if "Podman" in place else "docker")
    made = [Snippet("Docker", docker), Snippet("Kubernetes", _kubernetes(ask))]
    if "Slurm" in place:
        made.append(Snippet("Slurm", _slurm(ask)))
    wanted = "Docker" if "Podman" in place else place
    return tuple(row for row in made if row.place in wanted or place == "plain")


def _docker(ask: Ask, program: str) -> str:
    names = {"open files": "--ulimit nofile={}", "processes and threads": "--pids-limit={}"}
    more = [names[name].format(number) for name, number in ask.few]
    first = f"--cpus={ask.cores:g} --memory={_memory(ask, 'b', 'g')} --shm-size={_shm(ask, 'm')}"
    code = f"{program} run {first} {' '.join([*more, 'IMAGE'])}"
    told = [f"# {option.split()[0]}: from {number:,} on this report does not call it tight"
            for option, (_, number) in zip(more, ask.few, strict=True)]  # fmt: skip
    return "\n".join((*_comments(ask, "--cpus", "--memory", "--shm-size"), *told, code))


def _kubernetes(ask: Ask) -> str:
    return "\n".join((
        *_comments(ask, "cpu", "memory", "sizeLimit"),
        "# what lies in /dev/shm counts as memory used, too",
        "spec:",
        "  containers:",
        "  - name: train",
        "    image: IMAGE",
        "    resources:",
        f'      requests: {{cpu: "{ask.cores:g}", memory: {_memory(ask)}}}',
        f"      limits: {{memory: {_memory(ask)}}}   # no CPU limit: no throttling",
        "    volumeMounts:",
        "    - {name: shm, mountPath: /dev/shm}",
        "  volumes:",
        "  - name: shm",
        f"    emptyDir: {{medium: Memory, sizeLimit: {_shm(ask, 'M')}}}",
    ))  # fmt: skip


def _slurm(ask: Ask) -> str:
    return "\n".join((
        *_comments(ask, "--cpus-per-task", "--mem"),
        f"#SBATCH --cpus-per-task={math.ceil(ask.cores)}",
        f"#SBATCH --mem={_memory(ask, 'M', one_bytes=1 << 20)}",
        "srun --cpus-per-task=$SLURM_CPUS_PER_TASK python train.py",
    ))  # fmt: skip


def _memory(ask: Ask, one: str = "", billion: str = "G", one_bytes: int = 1) -> str:
    """In whole GB what the profile's processes held at their peak, else the limit of now, else a
    name; `one` (of so many bytes) and `billion` are the units as the place writes them."""
    if (peak := ask.needs.peak_bytes) > 0:
        return f"{math.ceil(peak / _GB)}{billion}"
    if ask.memory_limit is None:
        return "MEMORY"
    return f"{ask.memory_limit.value / one_bytes:.0f}{one}"


def _shm(ask: Ask, unit: str) -> str:
    need = ask.needs.batch_bytes * ask.needs.ahead(ask.workers)
    return f"{max(64, math.ceil(need / _MB))}{unit}" if need > 0 else "SHM"


def _comments(ask: Ask, cores: str, memory: str, shm: str = "") -> tuple[str, ...]:
    """Where each number comes from, a line each."""
    needs, limit = ask.needs, ask.memory_limit
    told = [f"{cores}: the cores that may be used here ({ask.cores_from})"]
    if needs.peak_bytes > 0:
        told.append(f"{memory}: the profile's processes held {_size(needs.peak_bytes)} at their "
                    "peak; add room for cached files")  # fmt: skip
    elif limit is not None:
        more = ", which is nearly used up: ask for more" if limit.state != "ok" else ""
        told.append(f"{memory}: the limit of now{more}")
    else:
        told.append(f"{memory}: put in the peak memory of a report (%%ioscope), and room for "
                    "cached files")  # fmt: skip
    count = needs.ahead(ask.workers)
    if shm and needs.batch_bytes > 0:
        told.append(f"{shm}: {count} batches of {_size(needs.batch_bytes)} wait there with "
                    f"num_workers={ask.workers}; 64 MB at least")  # fmt: skip
    elif shm:
        told.append(f"{shm}: put in workers x prefetch_factor x bytes of a batch")
    return tuple(f"# {text}" for text in told)


def _size(size: float) -> str:
    return bytes_text(size).replace(NBSP, " ")
