"""The child process of `apart`: does one job and says each step as a line of JSON."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import shutil
import signal
import stat
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from jupyter_ioscope.model.storage import Timing
from jupyter_ioscope.storage import measure

_PR_SET_PDEATHSIG = 1


def main() -> NoReturn:
    """Do what the one argument asks for. Exit code 0 when done, 3 when it was refused."""
    request = json.loads(sys.argv[1])
    signal.signal(signal.SIGTERM, _leave)
    _follow(int(request["parent"]))
    code = 0
    try:
        _JOBS[request["job"]](request)
    except measure.Refused as refusal:
        say("end", refused=str(refusal))
        code = 3
    except OSError as error:
        say("end", refused=reason(error, request.get("path", "")))
        code = 3
    except Exception as error:
        say("end", failed=f"{type(error).__name__}: {error}")
        code = 1
    os._exit(code)


def say(step: str, **content: Any) -> None:
    """One line for the parent."""
    row: dict[str, Any] = {"step": step}
    for name, value in content.items():
        row[name] = value._asdict() if isinstance(value, Timing) else value
    os.write(1, json.dumps(row).encode() + b"\n")


def reason(error: OSError, path: str) -> str:
    """One sentence for a request that the system refused."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        what = "quota is used up" if error.errno == errno.EDQUOT else "is full"
        return f"{path!r} {what}: the check wrote until there was no space, and removed it again"
    if error.errno == errno.EROFS:
        return f"{path!r} is read-only: name a file in it, which is then only read"
    return f"{path!r} answered a request with an error: {error.strerror or error}"


def _leave(_number: int, _frame: object) -> NoReturn:
    raise SystemExit(1)  # what is being done cleans up after itself


def _follow(parent: int) -> None:
    """End, with a clean-up, when the parent ends."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _check(request: dict[str, Any]) -> None:
    plan = measure.QUICK if request["quick"] else measure.THOROUGH
    measure.check(request["path"], plan, say)


def _touch(request: dict[str, Any]) -> None:
    """See whether a path answers at all: its attributes, and the first bytes of a file."""
    path = request["path"]
    say("touch", doing="looking at it")
    if stat.S_ISREG(os.stat(path).st_mode):
        say("touch", doing="reading its beginning")
        with open(path, "rb", buffering=0) as file:
            file.read(1)


def _remove(request: dict[str, Any]) -> None:
    """Remove a private folder that a child which was killed could not remove."""
    path = request["path"]
    if os.path.basename(path).startswith(measure.PREFIX):
        say("clean up", doing="removing the private folder")
        shutil.rmtree(path, ignore_errors=True)
        say("clean up", done=not os.path.lexists(path))


def _baseline(request: dict[str, Any]) -> None:
    from jupyter_ioscope.storage.baseline_jobs import run

    run(request, say)


_JOBS: dict[str, Callable[[dict[str, Any]], None]] = {
    "check": _check,
    "remove": _remove,
    "touch": _touch,
    "baseline": _baseline,
}
