"""torchdata's `StatefulDataLoader`: torch's loader with an `__iter__` and a worker loop of its own.

Its tasks say whether the worker's state is wanted, and batches bring that state along.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from jupyter_ioscope import optional

_MODULE = "torchdata.stateful_dataloader.stateful_dataloader"


def module() -> ModuleType | None:
    """Where `StatefulDataLoader` is, once the user has imported it."""
    return optional.loaded(_MODULE)


def task_of(message: Any) -> Any:
    """A message to a worker as torch's own loop would get it: (task, index), None where it only
    asks for the state to begin with, or what begins an epoch anew."""
    if type(message) is tuple:
        task, (index, _) = message
        return task, index
    return None if type(message).__name__ == "_AckStartup" else message


def batch_of(item: Any) -> Any:
    """What a worker sends, without the state."""
    task, sent = item
    return task, sent[0] if type(sent) is tuple else sent
