"""Where a job runs: a forked child, else a spawned process, else the kernel itself."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from typing import Any

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials import child as in_child
from jupyter_ioscope.trials import spawned
from jupyter_ioscope.trials.child import Job
from jupyter_ioscope.trials.folder import private_folder
from jupyter_ioscope.trials.forker import fork, forker
from jupyter_ioscope.trials.in_kernel import run_in_kernel
from jupyter_ioscope.trials.outcome import Watch
from jupyter_ioscope.trials.process import Child

FORKED, SPAWNED, KERNEL = "forked child", "spawned process", "in the kernel"


class Isolation:
    """Runs jobs on the best rung that works here; falls to the next one for good when it must.

    Attributes:
        rung: "forked child", "spawned process" or "in the kernel".
        text: why, and what it means for the numbers.
        folder: private folder of this comparison; removed on exit.
    """

    def __init__(self) -> None:
        self.rung, self.text = _first_rung()
        self.folder = ""
        self._held = ExitStack()

    def __enter__(self) -> Isolation:
        self.folder = self._held.enter_context(private_folder())
        return self

    def __exit__(self, *error: object) -> None:
        self._held.close()

    def run(self, job: Job, watch: Watch) -> tuple[dict[str, Any], int]:
        """The job's result and the peak memory of its process tree in bytes (PSS; 0: unknown).

        Raises:
            TrialError, Cancelled: as `Child.follow` does.
        """
        if self.rung == SPAWNED:
            try:
                payload = spawned.pickled(job)
            except Exception as error:
                self._fall(f"it cannot be pickled for a new process ({_short(error)})")
            else:
                try:
                    with self._folder() as folder:
                        path = os.path.join(folder, "job")
                        spawned.write(path, payload)
                        return self._follow(job, watch, lambda fd: spawned.start(path, fd, folder))
                except spawned.NotLoadableError as error:
                    self._fall(f"a new process cannot load it ({_short(error)})")
        if self.rung == KERNEL:
            with self._folder() as folder:
                return run_in_kernel(job, watch, folder)
        with self._folder() as folder:
            parent = os.getpid()

            def start(write_fd: int) -> int:
                return fork(lambda: in_child.serve(job, write_fd, folder, parent))

            return self._follow(job, watch, start)

    def _follow(self, job: Job, watch: Watch, start: Any) -> tuple[dict[str, Any], int]:
        in_child.prepare_libc()
        in_child.prepare_imports()
        read_fd, write_fd = os.pipe()
        child: Child | None = None
        future: Future[int] = forker().start(lambda: start(write_fd))
        try:
            try:
                pid = future.result()
            except OSError as error:
                os.close(read_fd)
                raise TrialError(f"arm {job.arm}: no process could be started: {error}") from error
            except BaseException:
                # An interrupt while waiting: the child may exist, and must still be ended.
                child = Child(_late(future), read_fd, job.arm)
                raise
            child = Child(pid, read_fd, job.arm)
            os.close(write_fd)
            write_fd = -1
            return spawned.checked(child.follow(watch)), child.peak_bytes
        finally:
            if write_fd >= 0:
                os.close(write_fd)
            if child is not None:
                child.end()

    @contextmanager
    def _folder(self) -> Iterator[str]:
        folder = tempfile.mkdtemp(prefix="t", dir=self.folder)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _fall(self, reason: str) -> None:
        self.rung = KERNEL
        self.text = (
            f"Trials ran in the kernel itself: {no_fork()} and {reason}. Do not run other cells "
            "meanwhile: they share its time, and a dataset with a random state of its own advances."
        )


def _late(future: Future[int]) -> int:
    until = time.monotonic() + 5
    while not future.done() and time.monotonic() < until:
        time.sleep(0.01)
    return future.result(timeout=0)


def _first_rung() -> tuple[str, str]:
    reason = no_fork()
    if not reason:
        return FORKED, (
            "Each trial ran in a fresh forked child of this process, with one torch thread in its "
            "main process; your objects were never touched."
        )
    return SPAWNED, f"Each trial ran in a fresh process, because {reason}."


def no_fork() -> str:
    """Why a forked child cannot be used, or ""."""
    if sys.platform != "linux":
        return f"forking a running program is not safe on {sys.platform}"
    torch = loaded("torch")
    if torch is not None and torch.cuda.is_initialized():
        return "CUDA is initialised in this process and does not survive a fork"
    return ""


def _short(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}"
    return text if len(text) <= 200 else text[:199] + "…"
