"""Advice that follows the limits, and configuration to copy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.storage import Limit, Snippet
from jupyter_ioscope.units import bytes_text, percent

if TYPE_CHECKING:
    from jupyter_ioscope.storage.limits import Machine


def workers(cores: float) -> int:
    """A number of workers to begin with where decoding keeps cores busy: one core is the loop's."""
    return max(1, math.floor(cores + 0.5) - 1)


def advice(
    rows: tuple[Limit, ...], cores: float, here: Machine, profile: Profile | None
) -> Iterator[str]:
    """What to do, most pressing first."""
    by_name = {row.name: row for row in rows}
    yield from _hit(by_name)
    count = workers(cores)
    yield (
        f"{cores:g} cores may be used: begin with num_workers={count} where workers "
        "decode (the loop then has a core as well); where they wait for storage, more can help: "
        "try with `%ioscope tune`."
    )
    if len(here.cores) < here.all_cores or cores < len(here.cores):
        yield (
            f"Do not derive num_workers from os.cpu_count(), which says {here.all_cores} here: use "
            "len(os.sched_getaffinity(0)), and mind the quota."
        )
    if cores < here.all_cores:
        yield (
            "Libraries size their thread pools by all cores: set OMP_NUM_THREADS=1 for workers, "
            "and cv2.setNumThreads(0) where OpenCV decodes."
        )
    yield from _for_profile(by_name, here, profile)
    yield from _tight(by_name)


def _hit(rows: dict[str, Limit]) -> Iterator[str]:
    if (row := rows.get("throttled by the quota")) is not None and row.state == "hit":
        yield (
            f"The CPU quota stopped this group in {percent(row.value)} of its periods: raise the "
            "quota, or use fewer workers and one thread a worker."
        )
    if rows.get("killed for memory") is not None:
        yield (
            "The kernel has killed processes of this group for memory: fewer workers, a smaller "
            "prefetch_factor, or a higher limit."
        )


def _for_profile(rows: dict[str, Limit], here: Machine, profile: Profile | None) -> Iterator[str]:
    if profile is None:
        return
    own = [use.last_private_bytes for use in profile.processes if use.worker >= 0]
    largest = max(own, default=-1)
    memory = rows.get("memory")
    if largest > 0 and memory is not None:
        used = here.groups.own("memory", "memory.current", "memory.usage_in_bytes")
        left = memory.value - (used[0] if used else 0) + sum(own)
        fit = max(0, int(left // largest))
        yield (
            f"A worker of the profile holds {bytes_text(largest)} of its own: about {fit} of them "
            f"fit under the memory limit."
        )
    batch = max((fetch.batch_bytes for fetch in profile.fetches), default=0)
    size = here.shm[0]
    if batch > 0 and size > 0:
        for loader in profile.loaders:
            ahead = loader.num_workers * (loader.prefetch_factor or 2)
            if loader.num_workers:
                state = "too small" if ahead * batch > size else "enough"
                yield (
                    f"{loader.num_workers} workers × {loader.prefetch_factor or 2} batches of "
                    f"{bytes_text(batch)} need {bytes_text(ahead * batch)} of /dev/shm: "
                    f"{bytes_text(size)} are {state}."
                )


def _tight(rows: dict[str, Limit]) -> Iterator[str]:
    def tight(name: str) -> bool:
        return name in rows and rows[name].state == "tight"

    if tight("/dev/shm"):
        yield (
            "/dev/shm is small: start the container with more (see below), or "
            "torch.multiprocessing.set_sharing_strategy('file_system') with a large /dev/shm."
        )
    if tight("open files"):
        yield (
            "Few open files: raise the soft limit (`ulimit -n`), or "
            "torch.multiprocessing.set_sharing_strategy('file_system')."
        )
    if tight("memory"):
        yield "Memory is nearly used up: the page cache of your files is dropped again and again."
    if any(" of device " in name for name in rows):
        yield (
            "The device is limited by a control group: smaller files (compression, narrower "
            "columns) or a copy on another device help; more workers do not."
        )
    if tight("NUMA nodes"):
        yield "Keep one training process and its workers on one node: numactl --cpunodebind=0."


def snippets(place: str, cores: float) -> tuple[Snippet, ...]:
    """How to ask for what a loader needs; that of the place itself comes first."""
    count = max(1, math.floor(cores + 0.5))
    made = [
        Snippet("Docker", _DOCKER.format(cores=count)),
        Snippet("Kubernetes", _KUBERNETES.format(cores=count)),
        Snippet("Slurm", _SLURM.format(cores=count)),
    ]
    known = [row for row in made if row.place in place or place == "plain"]
    if "Podman" in place:
        known = [Snippet("Docker", made[0].code.replace("docker run", "podman run"))]
    return tuple(known if "Slurm" in place else [row for row in known if row.place != "Slurm"])


# --shm-size: Docker's default is 64 MB; nofile: soft and hard limit.
_DOCKER = """\
docker run --cpus={cores} --memory=32g --shm-size=8g \\
    --ulimit nofile=65536:65536 --pids-limit=4096 IMAGE"""
# A container's /dev/shm is 64 MB; an emptyDir in memory replaces it and counts as memory used.
_KUBERNETES = """\
spec:
  containers:
  - name: train
    image: IMAGE
    resources:
      requests: {{cpu: "{cores}", memory: 32Gi}}
      limits: {{memory: 32Gi}}   # no CPU limit: no throttling
    volumeMounts:
    - {{name: shm, mountPath: /dev/shm}}
  volumes:
  - name: shm
    emptyDir: {{medium: Memory, sizeLimit: 8Gi}}"""
_SLURM = """\
#SBATCH --cpus-per-task={cores}
#SBATCH --mem=32G
srun --cpus-per-task=$SLURM_CPUS_PER_TASK python train.py"""
