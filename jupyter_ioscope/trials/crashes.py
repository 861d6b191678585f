"""How a process of a trial ended, and what to do about it, in words."""

from __future__ import annotations

import os
import re
import signal

_EXITS = (
    ": something that the loader calls ends its process (os._exit, or a library's own exit), as it "
    "would end your kernel"
)
_CRASHED = (
    "; the loader would end your kernel in the same way: a script with python -X faulthandler that "
    "draws the batches prints the line"
)
_MEMORY = " (often: out of memory): use fewer workers or smaller batches"
_MAPPED = f" (often: /dev/shm is full, or a mapped file became shorter){_CRASHED}"
_HINTS = {
    "SIGKILL": _MEMORY,
    "SIGBUS": _MAPPED,
    "SIGSEGV": _CRASHED,
    "SIGABRT": _CRASHED,
    "SIGFPE": _CRASHED,
    "SIGILL": _CRASHED,
}
# torch's words in a RuntimeError about a worker that is gone (torch/csrc/DataLoader.cpp).
_OF_WORKER = re.compile(
    r"DataLoader worker \(pid \d+\) "
    r"(?:is killed by signal: (?P<signal>[\w ]+)|exited unexpectedly with exit code (?P<code>\d+))"
)


def how_it_ended(status: int | None) -> str:
    """`was killed by SIGSEGV; ...` from a wait status; None where nobody could wait for it."""
    if status is None:
        return "ended"
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return f"was killed by {name}{_HINTS.get(name, '')}"
    return f"ended without a result (exit status {os.WEXITSTATUS(status)}){_EXITS}"


def worker_gone(text: str) -> str:
    """The same of a worker that torch reports as gone; "" for any other text."""
    found = _OF_WORKER.search(text)
    if found is None:
        return ""
    if found["code"] is not None:
        return f"a worker exited unexpectedly (exit status {found['code']}){_EXITS}"
    said = found["signal"].strip()
    names = {signal.strsignal(number): number.name for number in signal.Signals}
    return f"a worker was killed by signal: {said}{_HINTS.get(names.get(said, ''), '')}"
