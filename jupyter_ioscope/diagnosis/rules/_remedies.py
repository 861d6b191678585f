"""What to do about work in fetches that has no rule of its own, where stacks tell what it is."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.errors import NotMeasuredError

# From this part of the fetching on, it is what the advice is about.
_LEAST_PART = 0.3
# A `multiprocessing.Manager` keeps its objects in a process of its own: its proxies ask for them.
_MANAGER = "/multiprocessing/managers.py"
_SEARCHING = ("glob", "iglob", "rglob", "iterdir", "listdir", "scandir", "walk")
_SEARCHING_FILES = ("(glob)", "(fnmatch)")

ASKS_MANAGER = (
    "what a multiprocessing.Manager holds lies in another process: every access pickles the value, "
    "sends it over and unpickles it. Put arrays into shared memory once, before the workers start "
    "(a tensor, tensor.share_memory_(), a memory-mapped file), or let each worker keep a cache of "
    "its own"
)
LISTS_ONCE = (
    "list the folder once, in the dataset's __init__, and keep the paths (a dict that tells the "
    "path of an item, if need be)"
)
_COPIES = (
    "copy only what is changed afterwards (copy.copy, dict(record), a new list) instead of the "
    "whole record: copy.deepcopy goes through every object in it"
)
_BUILDS = (
    "keep numbers in arrays (numpy, an Arrow column's to_numpy()) and make tensors with "
    "torch.from_numpy: out of Python lists every number is converted on its own"
)


class _Remedy(NamedTuple):
    part: float
    text: str


def remedy(facts: Facts) -> str:
    """What makes the work cheaper that most of the fetching is seen in: the beginning of a sentence
    in lower case, without its end. Empty where nothing more is known than where it is done."""
    try:
        mix = facts.work
    except NotMeasuredError:
        return ""
    found = max(
        _Remedy(mix.under(_MANAGER)[0], ASKS_MANAGER),
        _Remedy(searching(facts), LISTS_ONCE),
        _Remedy(mix.fraction("copy")[0], _COPIES),
        _Remedy(mix.fraction("tensor_build")[0], _BUILDS),
        key=lambda row: row.part,
    )
    return found.text if found.part >= _LEAST_PART else ""


def sentence(text: str) -> str:
    """A remedy as a whole sentence."""
    return f"{text[0].upper()}{text[1:]}."


def asks_manager(facts: Facts) -> bool:
    """Whether fetches that wait for another process were seen to ask a Manager."""
    mixes = [facts.blocked_work]
    with contextlib.suppress(NotMeasuredError):
        mixes.append(facts.work)
    return any(mix is not None and mix.under(_MANAGER)[0] >= _LEAST_PART for mix in mixes)


def searching(facts: Facts) -> float:
    """Part of the fetching that searches folders, rather than asks for a file that it knows."""
    return facts.work.part(lambda row: row.kind == "file_stat" and _searches(row.function))[0]


def _searches(function: str) -> bool:
    if function.endswith(_SEARCHING_FILES):
        return True
    return function.partition(" ")[0].rpartition(".")[2] in _SEARCHING
