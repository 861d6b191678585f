"""JSON goes to a faster parser only where that reads the same out of the user's own lines."""

from __future__ import annotations

import json
from json import loads as imported
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.trials.compare import compare
from jupyter_ioscope.trials.toggles._json_swap import FastJson, difference
from jupyter_ioscope.trials.toggles.fast_json import TOGGLE, _differences
from tests.toggle_trials import compiles, runs, tried

pytestmark = [pytest.mark.timeout(300), pytest.mark.beside, pytest.mark.usefixtures("short_trials")]
orjson = pytest.importorskip("orjson")


class Lines(Dataset[Any]):
    """Parses a line for every sample, in one of several ways."""

    def __init__(self, lines: list[Any], way: str = "module") -> None:
        self.lines, self.way = lines, way

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> Any:
        line = self.lines[index % len(self.lines)]
        if self.way == "module":
            value = json.loads(line)
        elif self.way == "name":
            value = imported(line)
        elif self.way == "hooks":
            value = json.loads(line, parse_float=str)
        else:
            return index
        return repr(value)


ORDINARY = [
    '{"values": [0.1, 1e-7, -0.0, 123456789.123], "text": "\\u00e9\\ud83d\\ude00", "no": null}',
    '{"b": [true, false, [], {}], "a": 9007199254740993, "c": -9223372036854775808}',
    b'{"bytes": "\xc3\xa9"}',
    "[3.4028234663852886e38, 5e-324, 1.7976931348623157e308]",
    '{"twice": 1, "twice": 2}',
]


@pytest.mark.parametrize("way", ["module", "name"])
def test_ordinary_lines_come_out_equal(way: str) -> None:
    before = json.loads
    dataset = Lines(ORDINARY, way)
    found = tried(TOGGLE, DataLoader(dataset, batch_size=8))
    assert found.same
    assert found.spec.in_child == (FastJson("orjson"),)
    assert json.loads is before is imported
    code = compiles(TOGGLE, found.spec)
    assert runs(code, line=ORDINARY[1])["value"] == json.loads(str(ORDINARY[1]))


@pytest.mark.parametrize("line", ['{"x": NaN}', '{"x": [Infinity, -Infinity]}', b'"\xff\xfe"'])
def test_what_the_faster_parser_refuses_is_left_to_the_standard_one(line: Any) -> None:
    lines = [*ORDINARY, line]
    if isinstance(line, bytes):
        with pytest.raises(TrialError, match="Unicode"):
            tried(TOGGLE, DataLoader(Lines(lines), batch_size=8))
        return
    assert tried(TOGGLE, DataLoader(Lines(lines), batch_size=8)).same


def test_integers_that_change_are_refused() -> None:
    big = '{"id": 123456789012345678901234567890}'
    standard, fast = json.loads(big), orjson.loads(big)
    assert difference(standard, fast) == "123456789012345678901234567890 becomes " \
        "1.2345678901234568e+29 (float)"  # fmt: skip
    found = _differences([big], json.loads)
    if all(found.values()):
        with pytest.raises(TrialError, match="the values would change on these lines"):
            tried(TOGGLE, DataLoader(Lines([*ORDINARY, big]), batch_size=8))
    else:  # a parser that reads them as they are is taken instead
        assert tried(TOGGLE, DataLoader(Lines([*ORDINARY, big]), batch_size=8)).same


@pytest.mark.parametrize(
    ("one", "two", "text"),
    [
        (1, 1.0, "1 becomes 1.0 (float)"),
        (0.0, -0.0, "0.0 becomes -0.0"),
        (True, 1, "True becomes 1 (int)"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "keys ['a', 'b'] become ['b', 'a']"),
        ([1, [2]], [1, [3]], "2 becomes 3"),
        ([1], [1, 1], "a list of 1 becomes one of 2"),
        ({"a": ["x", None]}, {"a": ["x", None]}, ""),
    ],
)
def test_differences_are_told(one: Any, two: Any, text: str) -> None:
    assert difference(one, two) == text


@pytest.mark.parametrize(
    ("way", "reason"), [("hooks", "with options"), ("nothing", "json.loads is not called")]
)
def test_other_uses_are_refused(way: str, reason: str) -> None:
    with pytest.raises(TrialError, match=reason):
        tried(TOGGLE, DataLoader(Lines(ORDINARY, way), batch_size=8))


class Numbers(Lines):
    def __getitem__(self, index: int) -> Any:
        return torch.tensor(len(json.loads(self.lines[0])["values"]))


def test_it_is_found_faster() -> None:
    line = json.dumps({"values": [number / 7 for number in range(5_000)]})
    found = compare(DataLoader(Numbers([line]), 8), toggles=["fast_json"], budget_s=90)
    assert found.same_data.verdict == "identical"
    assert found.verdict == "faster"
    assert found.ratio > 1.5
