"""Second rung: a job in a fresh Python process. The job travels as a pickle in a private file."""

from __future__ import annotations

import os
import pickle
import sys
from multiprocessing import spawn
from typing import Any

from jupyter_ioscope.optional import installed, need
from jupyter_ioscope.trials.child import Job

_NOT_LOADABLE = "not_loadable"
_BOOT = "from jupyter_ioscope.trials import spawned; spawned.main()"


class NotLoadableError(Exception):
    """The job's objects cannot be rebuilt in a fresh process."""


def pickled(job: Job) -> bytes:
    """The job as bytes. cloudpickle, where installed, also carries classes made in a notebook."""
    if installed("cloudpickle"):
        data: bytes = need("cloudpickle", "a trial in a new process").dumps(job)
        return data
    return pickle.dumps(job)


def write(path: str, payload: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "wb") as file:
        # Where modules lie and what the main script is, as multiprocessing's spawn tells it.
        about = spawn.get_preparation_data("ioscope-trial")
        about.pop("authkey", None)  # a secret between processes of one tree; this one is its own
        pickle.dump(about, file)
        file.write(payload)


def start(path: str, write_fd: int, folder: str) -> int:
    """Start the process; returns its id."""
    arguments = [path, str(write_fd), folder, str(os.getpid()), os.pathsep.join(sys.path)]
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-c", _BOOT_PATH + _BOOT, *arguments],
        dict(os.environ),
        # The descriptor's own close-on-exec flag is dropped by duplicating it onto itself.
        file_actions=[(os.POSIX_SPAWN_DUP2, write_fd, write_fd)],
    )


_BOOT_PATH = "import os, sys; sys.path[:] = sys.argv[5].split(os.pathsep); "


def main() -> None:
    """Entry of the fresh process."""
    from jupyter_ioscope.trials.child import prepare_libc, serve

    path, fd, folder, parent = sys.argv[1:5]
    prepare_libc()
    serve(Job("", load_and_run, (path,)), int(fd), folder, int(parent))
    os._exit(0)


def load_and_run(emit: Any, stop: Any, folder: str, path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            spawn.prepare(pickle.load(file))
            job: Job = pickle.load(file)
    except Exception as error:
        return {_NOT_LOADABLE: f"{type(error).__name__}: {error}"}
    return job.run(emit, stop, folder, *job.arguments)


def checked(result: dict[str, Any]) -> dict[str, Any]:
    """The result, unless it says that the job could not be loaded.

    Raises:
        NotLoadableError: then the next rung is needed.
    """
    if _NOT_LOADABLE in result:
        raise NotLoadableError(result[_NOT_LOADABLE])
    return result
