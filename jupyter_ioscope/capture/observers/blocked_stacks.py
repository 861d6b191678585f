"""Stacks of threads at instants at which they were blocked, with the state they were in."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from jupyter_ioscope.capture._blocked_read import blocked_file, build_blocked, read_blocked
from jupyter_ioscope.capture._blocked_sampler import BlockedSampler
from jupyter_ioscope.capture.observers._observer import InWorker, Observed, Watched


class BlockedStacksObserver:
    """A thread in the profiled process and in every worker; none under `--no-stacks`."""

    name = "stacks by state"

    def __init__(self) -> None:
        self._own: BlockedSampler | None = None  # of this process; a forked worker inherits it

    def start(self, watched: Watched) -> Callable[[dict[int, int]], Observed]:
        if not watched.stacks:
            return lambda _: Observed()
        sampler = BlockedSampler(blocked_file(watched.folder), watched.consumer_tid)
        sampler.start()
        self._own = sampler
        return lambda workers: _end(sampler, watched, workers)

    def start_in_worker(self, settings: InWorker, stack: contextlib.ExitStack) -> None:
        own, self._own = self._own, None
        if own is not None:
            own.forget()
        if settings.stacks:
            sampler = BlockedSampler(blocked_file(settings.folder), threading.get_native_id())
            sampler.start()
            stack.callback(sampler.stop)


def _end(sampler: BlockedSampler, watched: Watched, workers: dict[int, int]) -> Observed:
    sampler.stop()
    notes = read_blocked(watched.folder)
    recorder = watched.recorder
    blocked = build_blocked(
        notes,
        pid=recorder.pid,
        consumer_tid=recorder.consumer_tid() or watched.consumer_tid,
        workers=workers,
        cells=watched.cells,
    )
    return Observed(
        blocked=blocked,
        stacks_cpu_s=sum(item.cpu_ns for item in notes) / 1e9,
    )


OBSERVER = BlockedStacksObserver()
