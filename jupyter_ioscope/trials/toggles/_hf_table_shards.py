"""A Hugging Face stream of a table in more shards, as `to_iterable_dataset(num_shards=n)` makes it.

`reshard` of datasets asks the source of a stream how its shards can be cut. Files of some kinds
know it; a stream that was made of a table does not, although each of its shards is a range of rows.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_SHARDS = "shards"  # the argument that holds the tables of such a source


@dataclass(frozen=True)
class Pieces:
    """What datasets asks for each shard: its rows in `number` ranges. Picklable, for workers."""

    number: int

    def __call__(self, shards: list[Any], **others: Any) -> Iterator[dict[str, Any]]:
        for table in shards:
            for index in range(self.number):
                piece = table.shard(num_shards=self.number, index=index, contiguous=True)
                yield {_SHARDS: [piece], **others}


def pieces_for(stream: Any, workers: int) -> int:
    """Into how many ranges each shard is to be cut so that all workers get as many; 0 where the
    stream is none of a table, or has too few rows for it."""
    tables = _tables(_source(stream))
    number = workers // math.gcd(workers, max(1, len(tables)))
    return number if tables and number > 1 and min(map(len, tables)) >= number else 0


def in_pieces(stream: Any, number: int) -> Any:
    """The stream with each of its shards cut into so many; the given one stays as it is."""
    made = stream.reshard()  # another object; a plain copy of a stream shares its attributes
    made._ex_iterable = top = copy.copy(made._ex_iterable)
    while (inner := getattr(top, "ex_iterable", None)) is not None:
        top.ex_iterable = copy.copy(inner)
        top = top.ex_iterable
    top.generate_more_kwargs_fn = Pieces(number)
    return made.reshard()


def _source(stream: Any) -> Any:
    """The innermost part of a stream: what reads, below all transforms."""
    found = getattr(stream, "_ex_iterable", None)
    while (inner := getattr(found, "ex_iterable", None)) is not None:
        found = inner
    return found


def _tables(source: Any) -> list[Any]:
    import datasets

    tables = (getattr(source, "kwargs", None) or {}).get(_SHARDS)
    if getattr(source, "generate_more_kwargs_fn", source) is not None or type(tables) is not list:
        return []
    return tables if all(isinstance(one, datasets.Dataset) for one in tables) else []
