"""Last rung: a job in the user's own process, in a thread, with the random states put back."""

from __future__ import annotations

import contextlib
import os
import queue
import random
import signal
import threading
import time
from collections.abc import Iterator
from multiprocessing.process import current_process
from typing import Any

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials import tree
from jupyter_ioscope.trials.child import Job, failure
from jupyter_ioscope.trials.outcome import Cancelled, Watch, hanging, result_of

_POLL_S = 0.05
_MEMORY_EVERY_S = 0.25
_LEAVE_S = 5.0


def run_in_kernel(job: Job, watch: Watch, folder: str) -> tuple[dict[str, Any], int]:
    """As `Isolation.run`. The job gets no folder, which tells it that the process is the user's;
    `folder` takes what killed workers leave.

    A dataset that hangs inside its own code cannot be ended here: its workers are killed, but
    without workers the thread stays until the call returns.

    Raises:
        TrialError: the job needs a process of its own.
    """
    if job.needs_child:
        raise TrialError(
            f"arm {job.arm}: this toggle changes a library for the whole process, so it can only "
            "be tried in a child process, and none can be used here"
        )
    messages: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    stopping = threading.Event()
    workers: set[int] = set()

    def body() -> None:
        try:
            with kept_random_state(), own_sockets(folder):
                result = job.run(messages.put, stopping.is_set, "", *job.arguments)
            messages.put({"kind": "result", "result": result})
        except BaseException as error:
            messages.put(failure(error))

    thread = threading.Thread(target=body, name="ioscope-trial", daemon=True)
    thread.start()
    peak = [0]
    try:
        return result_of(_wait(messages, watch, job.arm, peak, workers), job.arm), peak[0]
    finally:
        _leave(thread, stopping, workers)


def _wait(
    messages: queue.SimpleQueue[dict[str, Any]],
    watch: Watch,
    arm: str,
    peak: list[int],
    workers: set[int],
) -> dict[str, Any]:
    heard = looked = time.monotonic()
    report: dict[str, Any] = {}
    while True:
        with contextlib.suppress(queue.Empty):
            message = messages.get(timeout=_POLL_S)
            heard = time.monotonic()
            if message["kind"] != "beat":
                return message
            report = message
            workers.update(message.get("workers", ()))
        if watch.cancelled():
            raise Cancelled
        now = time.monotonic()
        if now - heard > watch.silence_s:
            raise hanging(arm, watch.silence_s)
        if now - looked >= _MEMORY_EVERY_S:
            looked = now
            peak[0] = max(peak[0], tree.memory_bytes([os.getpid(), *tree.descendants(os.getpid())]))
        watch.tick(report)


def _leave(thread: threading.Thread, stopping: threading.Event, workers: set[int]) -> None:
    stopping.set()
    thread.join(0.5)
    if thread.is_alive():
        # It waits for a worker: without its workers `next()` raises and the thread ends.
        for pid in workers & set(tree.descendants(os.getpid())):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        thread.join(_LEAVE_S)


@contextlib.contextmanager
def own_sockets(folder: str) -> Iterator[None]:
    """Have new workers put their sockets into `folder`, unless there is a place for them."""
    config: dict[str, Any] = current_process()._config  # type: ignore[attr-defined]
    if config.get("tempdir") is not None:
        yield
        return
    config["tempdir"] = folder
    try:
        yield
    finally:
        if config.get("tempdir") == folder:
            del config["tempdir"]


@contextlib.contextmanager
def kept_random_state() -> Iterator[None]:
    """Put the global random states of random, numpy and torch back afterwards."""
    numpy, torch = loaded("numpy"), loaded("torch")
    plain = random.getstate()
    legacy = numpy.random.get_state() if numpy else None
    drawn = torch.get_rng_state() if torch else None
    try:
        yield
    finally:
        random.setstate(plain)
        if numpy:
            numpy.random.set_state(legacy)
        if torch:
            torch.set_rng_state(drawn)
