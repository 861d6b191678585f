"""What taking over a batch was seen to be: Python objects out of a pickle, or tensors, each from a
descriptor of its own.

Both happen below `multiprocessing.Queue.get`. A tensor is rebuilt by torch, which asks the worker
for a descriptor; everything else is unpickled in C, which leaves no frame below `get` itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jupyter_ioscope.diagnosis.steps import consumer_stacks
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Frame

_GET = "/multiprocessing/queues.py"
_TENSORS = ("/torch/multiprocessing/", "/multiprocessing/resource_sharer.py",
            "/multiprocessing/reduction.py")  # fmt: skip
# Below `get`: waiting for the worker, and reading what it sent.
_PIPE = ("/multiprocessing/connection.py", "/selectors.py", "/multiprocessing/synchronize.py")


class Unpacking(NamedTuple):
    """Samples of unpickling objects, and of rebuilding tensors."""

    objects: int
    tensors: int

    @property
    def samples(self) -> int:
        return self.objects + self.tensors


def unpacking(profile: Profile) -> Unpacking:
    """What the consumer was seen doing below `get`. Nothing where stacks were taken from inside:
    unpickling keeps the GIL, so that these see it too seldom."""
    stacks = profile.stacks
    if stacks is None or stacks.source == "in-process":
        return Unpacking(0, 0)
    objects = tensors = 0
    for stack, frames in consumer_stacks(profile):
        below = _below_get(frames)
        if below is None:
            continue
        if _any_of(below, _TENSORS):
            tensors += stack.count
        elif not _any_of(below, _PIPE):
            objects += stack.count
    return Unpacking(objects, tensors)


def waits_for_batch(frames: Sequence[Frame]) -> bool:
    """Whether a stack of the consumer that asks for a batch waits for one to come, and does not
    take one apart that is there."""
    below = _below_get(frames)
    if below is None:  # it waits for the thread that pins
        return True
    return not _any_of(below, _TENSORS) and _any_of(below, _PIPE)


def _any_of(frames: Sequence[Frame], files: Sequence[str]) -> bool:
    return any(part in frame.file.replace("\\", "/") for frame in frames for part in files)


def _below_get(frames: Sequence[Frame]) -> Sequence[Frame] | None:
    """Frames below the queue's `get`; None where it is not in the stack."""
    for at, frame in enumerate(frames):
        if frame.file.replace("\\", "/").endswith(_GET) and frame.name.endswith("get"):
            return frames[at + 1 :]
    return None
