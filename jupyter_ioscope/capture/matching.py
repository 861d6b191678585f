"""Joins what the consumer and the workers recorded about the same batches."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jupyter_ioscope.capture.recorder import OpenEpoch, Recorder
from jupyter_ioscope.capture.records import WorkerFile
from jupyter_ioscope.model.profile import Gap
from jupyter_ioscope.model.records import Batch, Fetch, LoaderInfo, WorkerInfo


@dataclass(frozen=True)
class Matched:
    """Records of all processes with the same epoch and task numbers."""

    loaders: tuple[LoaderInfo, ...]
    batches: tuple[Batch, ...]
    fetches: tuple[Fetch, ...]
    workers: tuple[WorkerInfo, ...]
    gaps: tuple[Gap, ...]


def matched(recorder: Recorder, files: list[WorkerFile], end_ns: int) -> Matched:
    """Give every worker's fetch its epoch, and every batch its worker.

    A worker knows the epoch it was created in and how often it was reset since; a batch and a
    fetch belong together when epoch and task are equal. Fetches that ended after the profile are
    left out.
    """
    fetches = [
        fetch._replace(epoch=_epoch_of(fetch, resumed, recorder.epochs))
        for item in files
        for resumed, fetch in item.fetches
        if fetch.start_ns < end_ns
    ]
    by_task = {(fetch.epoch, fetch.task): fetch for fetch in fetches}
    batches = tuple(_with_worker(batch, by_task) for batch in recorder.batches())
    workers = tuple(sorted((item.info for item in files), key=lambda w: (w.entered_ns, w.worker)))
    pids = {worker.pid for worker in workers}
    silent = [pid for pid in recorder.worker_pids if pid not in pids]
    # Only workers that were there before the profile are expected to be silent.
    loaders = tuple(
        info
        if info.workers_before_profile and silent
        else replace(info, workers_before_profile=False)
        for info in recorder.loaders
    )
    return Matched(
        loaders=loaders,
        batches=batches,
        fetches=tuple(sorted((*fetches, *recorder.fetches), key=lambda f: f.start_ns)),
        workers=workers,
        gaps=_gaps(silent, loaders, workers),
    )


def _epoch_of(fetch: Fetch, resumed: int, epochs: list[OpenEpoch]) -> int:
    if resumed == 0:
        return fetch.epoch
    for epoch in epochs:
        if epoch.loader == fetch.loader and epoch.epoch > fetch.epoch and epoch.resets == resumed:
            return epoch.epoch
    return fetch.epoch


def _with_worker(batch: Batch, by_task: dict[tuple[int, int], Fetch]) -> Batch:
    fetch = by_task.get((batch.epoch, batch.task))
    if fetch is None:
        return batch
    return batch._replace(worker=fetch.worker, samples=fetch.samples)


def _gaps(
    silent: list[int], loaders: tuple[LoaderInfo, ...], workers: tuple[WorkerInfo, ...]
) -> tuple[Gap, ...]:
    gaps = []
    if silent and any(info.workers_before_profile for info in loaders):
        gaps.append(
            Gap(
                f"fetch records of {len(silent)} workers",
                "they were already running when the profile began; make the loader's iterator "
                "inside the profiled cell to record them",
            )
        )
    elif silent:
        gaps.append(
            Gap(
                f"fetch records of {len(silent)} workers",
                "they ended before they could write any",
            )
        )
    lost = sum(worker.records_lost for worker in workers)
    if lost:
        gaps.append(Gap(f"{lost} fetch records", "the temporary folder could not be written to"))
    return tuple(gaps)
