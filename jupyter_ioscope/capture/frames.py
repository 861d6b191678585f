"""Which part of a stack is the user's.

A stack of a notebook begins with some 24 frames of IPython and the event loop, a forked worker's
begins with its parent's. Both are cut; threads that only serve the notebook are dropped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from jupyter_ioscope.capture.pyspy import RawFrame

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_OUR_WRAPPERS = os.path.dirname(os.path.abspath(__file__)) + os.sep

# Packages whose frames at the beginning of a stack only lead to the user's code.
_PLUMBING = tuple(
    f"{os.sep}{name}{os.sep}"
    for name in ("ipykernel", "IPython", "tornado", "asyncio", "zmq", "traitlets", "nbclient")
)
_PLUMBING_FILES = (
    f"{os.sep}ipykernel_launcher.py",
    f"{os.sep}runpy.py",
    f"{os.sep}threading.py",
    f"{os.sep}nest_asyncio.py",
    f"{os.sep}colab_kernel_launcher.py",
)
_PLUMBING_MODULES = ("<frozen runpy>", "<shim>", "<interpreter trampoline>", "")
_IN_KERNEL, _KERNEL_DEPTH = f"{os.sep}ipykernel{os.sep}", 16
# A thread whose own code begins in one of these serves the notebook, not the user.
_SERVING = (*_PLUMBING[:2], _PLUMBING[4], f"{os.sep}jupyter_client{os.sep}")
_SERVING_THREADS = (
    "IPythonHistorySavingThread",
    "Heartbeat",
    "IOPub",
    "Control",
    "Shell channel",
    "Subshell",
    "ParentPoller",
    "ioscope",
)
_SERVING_PROCESSES = ("resource_tracker.py", "forkserver.py")


def is_ours(frame: RawFrame) -> bool:
    """A frame of the wrappers and threads of this package's recording."""
    return frame.file.startswith(_OUR_WRAPPERS)


def serves_notebook(thread: str) -> bool:
    """A thread of the kernel or of ioscope itself, by its name."""
    return thread.startswith(_SERVING_THREADS) or "_watch_pipe_fd" in thread


def of_consumer(frames: Sequence[RawFrame], in_cell: Callable[[str], bool]) -> tuple[RawFrame, ...]:
    """From the first frame of the profiled cell on; empty when the thread is outside of it."""
    start = 0
    for position, frame in enumerate(frames):
        # Our doors (magic, command line) run the user's code: what lies above them is not his.
        if frame.file.startswith(_OURS) and not is_ours(frame):
            start = position + 1
    for position in range(start, len(frames)):
        if in_cell(frames[position].file):
            return _without_ours(frames[position:])
    if any(_IN_KERNEL in frame.file for frame in frames[:_KERNEL_DEPTH]):
        return ()  # the notebook's own work between cells
    return _without_ours(frames[_first_not_plumbing(frames, start) :])


def of_worker(
    frames: Sequence[RawFrame], in_cell: Callable[[str], bool], main: bool = True
) -> tuple[RawFrame, ...]:
    """From the worker's loop on; without one, from where the process began or unpacks its task."""
    for position in range(len(frames) - 1, -1, -1):
        if _is_function(frames[position], "_worker_loop"):
            return _without_ours(frames[position:])
    for position in range(len(frames) - 1, -1, -1):
        in_process = frames[position].file.endswith(f"multiprocessing{os.sep}process.py")
        if in_process and _is_function(frames[position], "_bootstrap"):
            return _without_ours(frames[position + 1 :])
    # A worker of a fork server has the server's frames above its own.
    for position in range(len(frames) - 1, -1, -1):
        in_spawn = frames[position].file.endswith(f"multiprocessing{os.sep}spawn.py")
        if in_spawn and _is_function(frames[position], "_main"):
            return _without_ours(frames[position:])
    if any(frame.file.endswith(_SERVING_PROCESSES) for frame in frames[:4]):
        return ()
    if main:
        return of_consumer(frames, in_cell)
    return of_thread(frames, in_cell)


def of_thread(frames: Sequence[RawFrame], in_cell: Callable[[str], bool]) -> tuple[RawFrame, ...]:
    """Any other thread: without `threading`'s own frames; empty when it serves the notebook."""
    for position, frame in enumerate(frames):
        if in_cell(frame.file):
            return _without_ours(frames[position:])
    start = 0
    while start < len(frames) and frames[start].file.endswith(f"{os.sep}threading.py"):
        start += 1
    rest = frames[start:] or frames[-1:]
    if not rest or any(part in rest[0].file for part in _SERVING) or is_ours(rest[0]):
        return ()
    return _without_ours(rest)


def _is_function(frame: RawFrame, name: str) -> bool:
    return frame.name == name or frame.name.endswith(f".{name}")


def _first_not_plumbing(frames: Sequence[RawFrame], start: int) -> int:
    while start < len(frames) and _is_plumbing(frames[start]):
        start += 1
    return start


def _is_plumbing(frame: RawFrame) -> bool:
    file = frame.file
    return (
        any(part in file for part in _PLUMBING)
        or file.endswith(_PLUMBING_FILES)
        or file in _PLUMBING_MODULES
        or file.startswith(_OURS)
    )


def _without_ours(frames: Sequence[RawFrame]) -> tuple[RawFrame, ...]:
    return tuple(frame for frame in frames if not is_ours(frame) and frame.file not in ("<shim>",))
