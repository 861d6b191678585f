"""What the profiled cells of a kernel found, in the order in which they ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Ran(NamedTuple):
    """One profiled cell: numbers and words only, so that keeping it keeps nothing of the user's.

    `samples` is -1 where a batch does not tell how many it holds. `wait_fraction` is the part of
    `seconds` that the loop waited for batches; `cause` the title of the first finding, empty where
    there was none or nobody asked.
    """

    cell: int  # its number, 0 where it has none
    label: str
    batches: int
    samples: int
    seconds: float
    wait_fraction: float
    cause: str


@dataclass(frozen=True)
class History:
    """The newest profiled cells, the newest last."""

    ran: tuple[Ran, ...]
