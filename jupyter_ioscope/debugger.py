"""A debugger in the user's kernel: what it does to loaders, and processes that it leaves alone."""

from __future__ import annotations

import contextlib
import sys
from contextlib import AbstractContextManager
from typing import Any

HOLDS_WORKERS = (
    "ioscope: this kernel's debugger is on. It holds the worker processes that a cell forks, "
    "without end, and slows Python down: switch it off (the bug in the notebook's toolbar) to "
    "measure."
)


def undebugged() -> AbstractContextManager[None]:
    """What this thread starts within the block is no process of a debugger's.

    debugpy puts itself into every Python process that a debugged one starts or forks, and holds it
    until an editor attaches to it. A notebook's debugger never does: the process would stand still.
    """
    monkey = sys.modules.get("_pydev_bundle.pydev_monkey")  # there once a debugger was switched on
    skip = getattr(monkey, "skip_subprocess_arg_patch", None)
    return skip() if callable(skip) else contextlib.nullcontext()


def is_on(shell: Any) -> bool:
    """Whether the debugger of a notebook's kernel is switched on."""
    debugger = getattr(getattr(shell, "kernel", None), "debugger", None)
    return bool(getattr(debugger, "is_started", False))
