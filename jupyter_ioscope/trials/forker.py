"""One long-lived thread that starts all child processes of trials.

PR_SET_PDEATHSIG is bound to the *thread* that forked: a child forked from a short-lived thread (a
subshell, a widget callback) would be killed when that thread ends.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future

from jupyter_ioscope.debugger import undebugged


class Forker:
    """A daemon thread that runs functions one after the other."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._todo: queue.SimpleQueue[tuple[Callable[[], int], Future[int]]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="ioscope-forker", daemon=True).start()

    def start(self, function: Callable[[], int]) -> Future[int]:
        """Run `function`, which starts a process and returns its id, in the thread."""
        future: Future[int] = Future()
        self._todo.put((function, future))
        return future

    def _run(self) -> None:
        while True:
            function, future = self._todo.get()
            try:
                with undebugged():
                    future.set_result(function())
            except BaseException as error:
                future.set_exception(error)
            del function, future  # the function holds the user's objects


_lock = threading.Lock()
_forker: Forker | None = None


def forker() -> Forker:
    """This process's forker; made when first needed, and again in a process forked from it."""
    global _forker
    with _lock:
        if _forker is None or _forker.pid != os.getpid():
            _forker = Forker()
        return _forker


def fork(body: Callable[[], None]) -> int:
    """Fork; `body` runs in the child, which then ends without any clean-up of the parent's things.

    Returns the child's id, in the parent only.
    """
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            body()
            status = 0
        finally:
            os._exit(status)
    return pid
