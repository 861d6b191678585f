"""What the loaders of a profile take of cores and memory, for advice on limits."""

from __future__ import annotations

from typing import NamedTuple

from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.records import DEFAULT_PREFETCH, LoaderInfo

# Memory of all processes at their peak, best first: shared pages counted once, or in each of them.
_PEAKS = ("tree_pss_bytes", "tree_rss_bytes")


class Needs(NamedTuple):
    """Measured; -1 where the profile does not say.

    `loop_cores` is the CPU of the loop's own thread, fetches that it makes itself left out;
    `worker_bytes` is the largest worker's private memory, `batch_bytes` the largest batch, and
    `peak_bytes` the memory of all processes together.
    """

    loop_cores: float = -1.0
    worker_bytes: int = -1
    batch_bytes: int = -1
    peak_bytes: float = -1.0
    loaders: tuple[LoaderInfo, ...] = ()

    def ahead(self, workers: int) -> int:
        """Batches that so many workers keep waiting in shared memory."""
        return workers * max((loader.prefetch for loader in self.loaders), default=DEFAULT_PREFETCH)


def needs(profile: Profile | None) -> Needs:
    """What the profile says."""
    if profile is None:
        return Needs()
    own = [use.last_private_bytes for use in profile.processes if use.worker >= 0]
    peak = next((profile.series[n].peak() for n in _PEAKS if n in profile.series), 0.0)
    return Needs(
        loop_cores=_loop_cores(profile),
        worker_bytes=max(own, default=-1),
        batch_bytes=max((fetch.batch_bytes for fetch in profile.fetches), default=-1),
        peak_bytes=peak if peak > 0 else -1.0,
        loaders=tuple(profile.loaders),
    )


def _loop_cores(profile: Profile) -> float:
    if not profile.batches or profile.wall_ns <= 0:
        return -1.0
    used = sum(max(0, row.step_cpu_ns) + max(0, row.wait_cpu_ns) for row in profile.batches)
    fetched = sum(max(0, row.cpu_ns) for row in profile.fetches if row.worker < 0)
    return max(0, used - fetched) / profile.wall_ns
