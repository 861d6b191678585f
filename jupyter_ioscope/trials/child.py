"""Life in a trial's child process: made quiet and independent, runs one job, says what came out.

Messages are JSON lines on a pipe: {"kind": "beat" | "result" | "error", ...}.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials.open_files import own_positions

Emit = Callable[[dict[str, Any]], None]
Stop = Callable[[], bool]
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_HELD_S = 30.0  # far longer than the parent needs to end a child that is done
_IMPORTED = (
    "multiprocessing.forkserver",
    "multiprocessing.popen_fork",
    "multiprocessing.queues",
    "multiprocessing.synchronize",
    "numpy.random",
)
_libc: Any = None


@dataclass(frozen=True)
class Job:
    """A function `run(emit, stop, folder, *arguments) -> dict`, with what it needs.

    `folder` is private to the job's process; it is "" when the job runs in the user's own process,
    where nothing may be changed for good. `needs_child`: the job is impossible there.
    `takes_apart`: it gives itself open files of its own, and so nobody else has to.
    """

    arm: str
    run: Callable[..., dict[str, Any]]
    arguments: tuple[Any, ...]
    needs_child: bool = False
    takes_apart: bool = False


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that forked it ends (Linux)."""
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def keep_orphans() -> None:
    """Become the parent of everything below whose own parent ends, also of programs that left the
    process group: so all of it can be found (Linux)."""
    if _libc is not None:
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def prepare_libc() -> None:
    """Load libc in the parent: a lock of the loader may be held by another thread at fork."""
    global _libc
    if _libc is None and sys.platform == "linux":
        _libc = ctypes.CDLL(None, use_errno=True)


def prepare_imports() -> None:
    """Import in the parent, once, what each of its children would otherwise import anew, for about
    10 ms of CPU."""
    for name in _IMPORTED:
        if name.partition(".")[0] in ("multiprocessing", *sys.modules):
            with contextlib.suppress(ImportError):  # not on every system
                importlib.import_module(name)


def serve(job: Job, write_fd: int, folder: str, parent_pid: int) -> None:
    """Run `job` in this process, which is a fork of the user's or a fresh interpreter."""

    def emit(message: dict[str, Any]) -> None:
        data = (json.dumps(message) + "\n").encode()
        while data:
            data = data[os.write(write_fd, data) :]

    try:
        message = _run(job, folder, parent_pid, emit)
    except BaseException as error:
        message = failure(error)
    emit(message)
    hold()


def hold() -> None:
    """Wait to be ended: what this process started can then be found below it, and ended too."""
    time.sleep(_HELD_S)


def _run(job: Job, folder: str, parent_pid: int, emit: Emit) -> dict[str, Any]:
    try:
        detach(parent_pid, folder)
        if not job.takes_apart:
            own_positions((os.path.realpath(os.path.dirname(folder)),))
        result = job.run(emit, lambda: False, folder, *job.arguments)
    except BaseException as error:
        # torch's handler raises at any place for each worker that dies: the first cause counts.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        return failure(error)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    return {"kind": "result", "result": result}


def failure(error: BaseException) -> dict[str, Any]:
    """An exception as a message: its type, its own text with its cause, and the traceback."""
    cause = f" ({error.__cause__})" if error.__cause__ is not None else ""
    return {
        "kind": "error",
        "type": type(error).__name__,
        "text": f"{error}{cause}",
        "traceback": "".join(traceback.format_exception(type(error), error, error.__traceback__)),
    }


def detach(parent_pid: int, folder: str) -> None:
    """Cut what ties a forked child to the program it was forked from. Order matters: first what
    makes sure that it dies with its parent, then what could hang, then what could be seen."""
    with contextlib.suppress(OSError):
        os.setsid()
    die_with_parent()
    keep_orphans()
    if parent_pid and os.getppid() != parent_pid:
        os._exit(71)  # the parent ended before the death signal was set
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    _become_main_thread()
    signal.set_wakeup_fd(-1)
    _quiet()
    sys.setprofile(None)
    sys.settrace(None)
    threading.setprofile(None)
    threading.settrace(None)
    gc.freeze()  # garbage of the parent holds its workers and files: never finalise it here
    _own_multiprocessing(folder)
    if sys.platform == "linux":
        os.register_at_fork(after_in_child=die_with_parent)
    torch = loaded("torch")
    if torch is not None:
        # OpenMP threads do not survive a fork: the next parallel region would wait for ever.
        torch.set_num_threads(1)


def _become_main_thread() -> None:
    """The thread that forked is the only one here. torch watches for killed workers only where it
    finds itself in an instance of the main thread's class."""
    current: Any = threading.current_thread()
    with contextlib.suppress(AttributeError, TypeError):
        current.__class__ = threading._MainThread  # type: ignore[attr-defined]
        current.name = "MainThread"


def _quiet() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)
    # A notebook's streams would send the child's text to the user's page.
    sys.stdin = open(os.devnull)  # noqa: SIM115 - for the life of the process
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    logging.disable(logging.CRITICAL)  # the user's log files are not the trial's to write
    os.environ["TQDM_DISABLE"] = "1"
    datasets = loaded("datasets")
    if datasets is not None:
        with contextlib.suppress(Exception):
            datasets.disable_progress_bars()


def _own_multiprocessing(folder: str) -> None:
    """Forget the parent's helpers: they are not our children, and a killed child would leave its
    semaphores registered with the parent's tracker."""
    import multiprocessing.process as process
    from multiprocessing import forkserver, resource_tracker

    process._children = set()  # type: ignore[attr-defined]
    # Sockets of workers lie in a folder that the parent removes afterwards.
    process.current_process()._config["tempdir"] = folder  # type: ignore[attr-defined]
    tracker: Any = resource_tracker._resource_tracker
    tracker._fd = tracker._pid = None
    tracker._lock = threading.RLock()  # may be held by another thread at the fork
    server: Any = forkserver._forkserver
    server._forkserver_address = server._forkserver_alive_fd = server._forkserver_pid = None
    server._lock = threading.RLock()
