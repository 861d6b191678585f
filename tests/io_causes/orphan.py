"""A process beside the tests: not below this process, so that no profile counts it as the loader's
own, and gone as soon as this process is."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
START_S = 20.0


@contextlib.contextmanager
def orphan(module: str, *arguments: str) -> Iterator[str]:
    """Run `module` with a pipe's number and `arguments`; gives the line with which it says that it
    is ready, and ends it with the block.

    Raises:
        RuntimeError: it did not become ready; the text is the last line it wrote.
    """
    listen, hold = os.pipe()
    try:
        command = [sys.executable, "-m", module, str(listen), *arguments]
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=(listen,),
            start_new_session=True,
        )
    except BaseException:
        os.close(hold)
        raise
    finally:
        os.close(listen)
    pid = 0
    try:
        assert process.stdout is not None
        first = process.stdout.readline().split(" ", 1)
        if len(first) != 2:
            assert process.stderr is not None
            process.wait(START_S)
            errors = process.stderr.read().strip().splitlines()
            raise RuntimeError(f"{module} did not start: {errors[-1] if errors else 'no reason'}")
        process.wait(START_S)  # the one that was started is gone, its child stays
        pid = int(first[0])
        yield first[1].strip()
    finally:
        os.close(hold)
        _end(pid)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _end(pid: int, within_s: float = 5.0) -> None:
    """Wait until the orphan has seen that nobody holds the pipe, and is gone."""
    until = time.monotonic() + within_s
    while pid and Path(f"/proc/{pid}").exists() and time.monotonic() < until:
        time.sleep(0.005)


def detach() -> None:
    """In the module: go on in a child whose parent is gone."""
    if os.fork():
        os._exit(0)


def ready(text: str) -> None:
    """In the module: say that the service is there."""
    print(os.getpid(), text, flush=True)
    null = os.open(os.devnull, os.O_WRONLY)  # whoever reads the pipe's end waits for nobody
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.close(null)


def when_let_go(pipe: int, end: object) -> None:
    """In the module: call `end` once nobody holds the other end of the pipe any more."""
    assert callable(end)

    def wait() -> None:
        while os.read(pipe, 1):
            pass
        end()

    threading.Thread(target=wait, name="until let go", daemon=True).start()
