"""Advice that follows the limits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from jupyter_ioscope.model.storage import Limit
from jupyter_ioscope.storage import surroundings
from jupyter_ioscope.storage.loader_needs import Needs
from jupyter_ioscope.storage.snippets import Ask
from jupyter_ioscope.units import bytes_text, percent, significant

if TYPE_CHECKING:
    from jupyter_ioscope.storage.limits import Machine


def workers(cores: float, ranks: int, needs: Needs) -> int:
    """A number of workers to begin with where they keep cores busy: one a core, less what the loop
    itself uses, where a profile says that.

    One a core is also what torch warns beyond (DataLoader's "suggested max number of worker").
    """
    loop = needs.loop_cores if needs.loop_cores > 0 else 0.0
    return max(1, math.ceil(cores / ranks - loop - 0.5))  # to the nearest, a half down


def advice(rows: tuple[Limit, ...], asked: Ask, here: Machine, ranks: int) -> Iterator[str]:
    """What to do, most pressing first."""
    by_name = {row.name: row for row in rows}
    yield from _hit(by_name)
    yield _begin(asked, ranks)
    if len(here.cores) < here.all_cores or asked.cores < len(here.cores):
        yield (
            f"Do not derive num_workers from os.cpu_count(), which says {here.all_cores} here: use "
            "len(os.sched_getaffinity(0)), and mind the quota."
        )
    if asked.cores < here.all_cores:
        yield (
            "Libraries size their thread pools by all cores: set OMP_NUM_THREADS=1 for workers, "
            "and cv2.setNumThreads(0) where OpenCV decodes."
        )
    # A loader made anew for every epoch says the same each time.
    yield from dict.fromkeys(_for_profile(here, asked.needs))
    yield from _tight(by_name)
    yield from _numa(here)


def _begin(asked: Ask, ranks: int) -> str:
    loop = asked.needs.loop_cores
    shared = f", shared by {ranks} ranks" if ranks > 1 else ""
    many = f"{asked.cores:g} core{'' if asked.cores == 1 else 's'}"
    told = (
        f"{many} may be used ({asked.cores_from}{shared}): where workers decode, begin with "
        f"num_workers={asked.workers}, "
    )
    if asked.workers < workers(asked.cores, ranks, asked.needs):
        told += "as many as fit into the memory that is left"
    elif loop >= 0:
        told += (
            f"one a core, less the {significant(loop, 2)} cores that the loop itself used in the "
            "profile; where they wait for storage, more can help"
        )
    else:
        told += (
            "one a core; where they wait for storage, more can help, and where the loop computes "
            "on these cores itself, fewer (after %%ioscope this line takes off what it uses)"
        )
    return f"{told}. `%ioscope tune` tries."


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


def _for_profile(here: Machine, needs: Needs) -> Iterator[str]:
    left = left_bytes(here)
    if needs.worker_bytes > 0 and left is not None:
        yield (
            f"A worker of the profile holds {bytes_text(needs.worker_bytes)} of its own: about "
            f"{int(left // needs.worker_bytes):,} of them fit into the memory that is left."
        )
    size = here.shm[0]
    if needs.batch_bytes <= 0 or size <= 0:
        return
    for loader in needs.loaders:
        if loader.num_workers:
            need = loader.num_workers * loader.prefetch * needs.batch_bytes
            state = "too small" if need > size else "enough"
            workers = "worker" if loader.num_workers == 1 else "workers"
            yield (
                f"{loader.num_workers} {workers} × {loader.prefetch} batches of "
                f"{bytes_text(needs.batch_bytes)} need {bytes_text(need)} of /dev/shm: "
                f"{bytes_text(size)} are {state}."
            )


def left_bytes(here: Machine) -> int | None:
    """Memory that workers can still take; None if unknown."""
    known = [here.memory[1]] if here.memory[1] > 0 else []
    if (limited := here.groups.memory()) is not None:
        known.append(limited.left_bytes)
    return min(known, default=None)


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


def _numa(here: Machine) -> Iterator[str]:
    nodes = surroundings.numa_nodes(here.groups, here.cores)
    if len(nodes) > 1:
        name, cores = max(nodes, key=lambda row: row[1])
        number = name.removeprefix("node")
        yield (
            f"Keep one training process and its workers on one node, such as {name} with {cores} "
            f"of the cores: numactl --cpunodebind={number} --membind={number} python train.py"
        )
