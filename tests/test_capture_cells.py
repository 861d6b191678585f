"""Code of a cell is named by its execution count."""

from __future__ import annotations

import linecache
import types
from collections.abc import Iterator

import pytest

from jupyter_ioscope.capture.cells import CellMap
from jupyter_ioscope.model.profile import Cell

FILE = "/tmp/ipykernel_1/42.py"


@pytest.fixture
def cached_source() -> Iterator[str]:
    linecache.cache[FILE] = (11, None, ["x = 1\n", "y = 2\n"], FILE)
    yield "x = 1\ny = 2\n"
    del linecache.cache[FILE]


def _shell(numbers: object) -> types.SimpleNamespace:
    return types.SimpleNamespace(compile=types.SimpleNamespace(_filename_map=numbers))


def test_a_file_of_a_cell_is_named_by_its_number(cached_source: str) -> None:
    cells = CellMap.from_shell(_shell({FILE: 7}))
    assert cells.name(FILE) == ("In [7]", 7)
    assert FILE in cells


def test_a_cell_that_is_compiled_later_is_named_as_well(cached_source: str) -> None:
    numbers: dict[str, int] = {}
    cells = CellMap.from_shell(_shell(numbers))
    assert FILE not in cells
    numbers[FILE] = 8  # as for the cell under %%ioscope, whose recording begins before
    assert cells.name(FILE) == ("In [8]", 8)
    assert cells.cells() == (Cell(8, cached_source),)


def test_other_files_keep_their_names() -> None:
    assert CellMap().name("/home/me/train.py") == ("/home/me/train.py", 0)


def test_only_cells_that_were_asked_for_hand_over_their_source(cached_source: str) -> None:
    cells = CellMap.from_shell(_shell({FILE: 7, "/tmp/ipykernel_1/43.py": 8}))
    assert cells.cells() == ()
    cells.name(FILE)
    assert cells.cells() == (Cell(7, cached_source),)


@pytest.mark.parametrize("shell", [None, object(), _shell(None), _shell({FILE: "seven"})])
def test_a_shell_without_a_usable_map_gives_an_empty_one(shell: object) -> None:
    assert CellMap.from_shell(shell).name(FILE) == (FILE, 0)


def test_ipythons_own_compiler_is_understood() -> None:
    compilerop = pytest.importorskip("IPython.core.compilerop")
    compiler = compilerop.CachingCompiler()
    file = compiler.cache("for i in range(3):\n    pass\n", 12)
    cells = CellMap.from_shell(types.SimpleNamespace(compile=compiler))
    assert cells.name(file) == ("In [12]", 12)
    assert cells.cells()[0].source == "for i in range(3):\n    pass\n"
