"""The line of the magic: the user's variables in it, and a line that cannot be filled."""

from __future__ import annotations

import pytest

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.magic_line import expander, strip_magic, usable

NAMES = {"n": 5, "folder": "/data/a b"}


@pytest.mark.parametrize("line", ["--batches {n}", "--batches $n", "--batches {n + 0}"])
def test_variables_are_filled_in_as_in_every_other_magic(line: str) -> None:
    options = usable(line, expander(NAMES))
    assert options is not None
    assert options.capture.batches == 5


def test_a_path_with_blanks_stays_one_word_where_it_is_quoted() -> None:
    options = usable("--save '{folder}/run.json'", expander(NAMES))
    assert options is not None
    assert options.save == "/data/a b/run.json"


@pytest.mark.parametrize(
    "line", ["--label {nobody}", "--label {1/0}", "--label {", "--label $nobody"]
)
def test_what_cannot_be_filled_stays_as_it_is(line: str) -> None:
    options = usable(line, expander(NAMES))
    assert options is not None
    assert options.label == line.removeprefix("--label ")


def test_the_line_is_taken_off_only_where_it_can_be_used() -> None:
    cell = ["%%ioscope --batches {n}\n", "x = 1\n"]
    assert strip_magic(cell, expander(NAMES)) == ["# %%ioscope\n", "x = 1\n"]
    assert strip_magic(cell) == cell


def test_variables_that_raise_anything_do_no_harm() -> None:
    class Bad:
        def __format__(self, _: str) -> str:
            raise InputError("no")

    assert expander({"bad": Bad()})("--label {bad}") == "--label {bad}"
