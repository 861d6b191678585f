"""Which notebook cell a code object came from."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Mapping
from typing import Any

from jupyter_ioscope.model.profile import Cell


class CellMap:
    """File name of a compiled cell -> execution count and source.

    Outside of IPython it is empty and every file keeps its name. It remembers which cells were
    asked for, so that a profile carries the source of no other cell.
    """

    def __init__(self, files: Mapping[str, tuple[int, str]] | None = None) -> None:
        self._files: Mapping[str, tuple[int, str]] = {} if files is None else files
        self._asked: dict[int, str] = {}

    @classmethod
    def from_shell(cls, shell: Any) -> CellMap:
        """From the map that IPython's compiler keeps for its tracebacks; empty without one."""
        compiler = getattr(shell, "compile", None)
        numbers = getattr(compiler, "_filename_map", None)
        return cls(_Compiled(numbers)) if isinstance(numbers, Mapping) else cls()

    def __contains__(self, file: str) -> bool:
        return file in self._files

    def name(self, file: str) -> tuple[str, int]:
        """("In [7]", 7) for code of cell 7, (file, 0) for anything else."""
        found = self._files.get(file)
        if found is None:
            return file, 0
        number, source = found
        self._asked[number] = source
        return f"In [{number}]", number

    def cells(self) -> tuple[Cell, ...]:
        """The cells that were asked for, in order of execution."""
        return tuple(Cell(number, self._asked[number]) for number in sorted(self._asked))


class _Compiled(Mapping[str, tuple[int, str]]):
    """File name -> execution count and source, as IPython knows them when asked.

    Not a copy: the cell under `%%ioscope` is compiled after its recording has begun.
    """

    def __init__(self, numbers: Mapping[str, Any]) -> None:
        self._numbers = numbers

    def __getitem__(self, file: str) -> tuple[int, str]:
        number = self._numbers[file]
        if not isinstance(number, int):
            raise KeyError(file)
        return number, _source(file)

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._numbers))

    def __len__(self) -> int:
        return len(self._numbers)


def _source(file: str) -> str:
    # The cache itself, not getlines(): IPython's entry must not be checked against the disk.
    entry = linecache.cache.get(file)
    lines = entry[2] if entry is not None and len(entry) > 2 else []
    return "".join(lines)
