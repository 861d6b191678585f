"""What the records cost, by timing some on this machine right after the profile."""

from __future__ import annotations

import tempfile
import time

from jupyter_ioscope.capture.recorder import Recorder
from jupyter_ioscope.capture.records import BatchSize, WorkerLog, usage

_REPEAT = 200


def records_cost_s(batches: int, fetches: int) -> float:
    """CPU seconds that `batches` consumer records and `fetches` worker records took, estimated
    from the CPU time of 200 of each, taken now."""
    if not batches:
        return 0.0
    try:
        return batches * _consumer_s() + fetches * _worker_s()
    except OSError:
        return batches * _consumer_s()


def _consumer_s() -> float:
    recorder = Recorder("")
    epoch = recorder.open_epoch(0, 0)
    start_ns = time.thread_time_ns()
    for _ in range(_REPEAT):
        epoch.last_row = -1  # after a short batch only the clock would be read
        recorder.wait_begins(epoch)
        recorder.wait_ends(epoch, 1, -1, 0)
    return (time.thread_time_ns() - start_ns) / _REPEAT / 1e9


def _worker_s() -> float:
    with tempfile.TemporaryDirectory(prefix="ioscope-") as folder:
        log = WorkerLog(folder, 0, 0, 0, -1)
        start_ns = time.thread_time_ns()
        for _ in range(_REPEAT):
            start = usage()
            log.fetch(start, usage(), 0, 0, 0, 1, BatchSize(1, 1))
        spent_ns = time.thread_time_ns() - start_ns
        log.close()
    return spent_ns / _REPEAT / 1e9
