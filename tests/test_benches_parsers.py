"""The benches of JSON parsers, pickle protocols and messages: what each gets wrong."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from jupyter_ioscope.benches import json_parsers, pickling, protobuf
from jupyter_ioscope.benches._bench import Arm, Prepared
from jupyter_ioscope.errors import InputError

BIG = b'{"id": 123456789012345678901}'


def looks(prepared: Prepared) -> dict[str, list[str]]:
    """What each arm's outcome has of its own; every arm also runs."""
    found = {}
    for arm in prepared.arms:
        arm.open()()
        found[f"{arm.group} {arm.name}".strip()] = list(arm.look()) if arm.look else []
    return found


def test_a_parser_that_rounds_big_integers_is_found_on_the_users_lines() -> None:
    pytest.importorskip("orjson")
    found = looks(json_parsers.prepare([b'{"id": 1}', BIG], ""))
    assert found["orjson"] == [
        "text 2: 123456789012345678901 becomes 1.2345678901234568e+20 (float)"
    ]
    assert found["json"] == []


def test_a_parser_that_refuses_is_found() -> None:
    pytest.importorskip("orjson")
    (said,) = looks(json_parsers.prepare(['{"a": NaN}', "[1]"], ""))["orjson"]
    assert said.startswith("text 1 is refused")


def test_probe_lines_list_who_differs() -> None:
    pytest.importorskip("orjson")
    reads, writes = json_parsers.prepare([BIG], "").tables({})
    told = {row[0]: row for row in (*reads.rows, *writes.rows)}
    assert told["NaN"][1] == "NaN"  # the last: what json writes
    assert "orjson" in told["lone surrogate"][2]
    assert told["duplicate key"][1] == '{"a": 2}'
    assert len(reads.rows) == len(json_parsers.PROBES) + 1


def test_missing_parsers_are_rows_with_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_parsers, "installed", lambda name: name == "json")
    prepared = json_parsers.prepare([BIG], "")
    assert [row.reason for row in prepared.missing][1] == "not installed: pip install ujson"
    assert [arm.name for arm in prepared.arms] == ["json"]


def test_a_whole_document_over_several_lines_is_one_text(tmp_path: Path) -> None:
    file = tmp_path / "all.json"
    file.write_text(json.dumps({"rows": [1, 2]}, indent=2))
    assert json_parsers.prepare(file, "").arms[0].items == 1


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ([], "target is empty: give the path of a .jsonl"),
        ([1], "something else than JSON texts"),
        (["{"], "no JSON that the standard parser reads"),
        (3, "target is an int"),
        ("no-such-file.jsonl", "there is no"),
    ],
)
def test_what_holds_no_json_is_refused(target: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        json_parsers.prepare(target, "")


def test_a_file_that_is_something_else_is_named(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b"PAR1\0\0\0\0")
    with pytest.raises(InputError, match="it is a Parquet file"):
        json_parsers.prepare(str(file), "")


def test_a_file_of_anything_with_digits_alone_in_a_line_is_no_json(tmp_path: Path) -> None:
    file = tmp_path / "rows.npy"
    file.write_bytes(b"\x93NUMPY" + bytes(range(11, 256)) + b"\n5\n")
    with pytest.raises(InputError, match="hardly any JSON that the standard parser"):
        json_parsers.prepare(str(file), "")


def test_lines_that_are_damaged_are_left_out_of_many(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b'{"id": 1}\n' * 9 + b'{"id": \n')
    prepared = json_parsers.prepare(file, "")
    assert prepared.arms[0].items == 9
    assert any(said.startswith("1 texts that") for said in prepared.sentences({}))


def test_out_of_band_arrays_come_back_read_only() -> None:
    numpy = pytest.importorskip("numpy")
    found = looks(pickling.prepare({"image": numpy.ones((4, 4)), "label": 1}, ""))
    assert "read-only" in found["load protocol 5, out of band"][0]
    assert found["load protocol 2"] == []
    assert {name.split(" ", 1)[0] for name in found} == {"dump", "load"}


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        (threading.Lock(), "cannot be pickled: TypeError"),
        (lambda: 1, "cannot be pickled"),
        ("file.pkl", "a pickle file is not opened"),
    ],
)
def test_samples_that_cannot_be_pickled_are_refused_in_a_sentence(sample: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        pickling.prepare(sample, "")


ROWS = [{"id": 1, "text": "a", "at": 0.5, "v": [1.0, 2.0]}, {"id": 0, "text": None, "v": []}]


def test_arrays_are_found_however_deep_they_lie() -> None:
    numpy = pytest.importorskip("numpy")
    deep: Any = numpy.ones(3)
    for _ in range(9):
        deep = [{"in": deep}]
    deep.append(deep)  # and a cycle ends
    assert sum(1 for _ in pickling._arrays(deep)) == 1


def test_messages_and_arrow_bring_the_rows_back() -> None:
    pytest.importorskip("google.protobuf")
    pytest.importorskip("pyarrow")
    rows: list[dict[str, Any]] = [
        {"id": n, "text": f"row {n}", "v": [0.5, n * 1.0]} for n in (0, 7)
    ]
    found = looks(protobuf.prepare(rows, ""))
    assert not any(found.values())
    assert {name.partition(" ")[0] for name in found} == {"write", "read"}


def test_what_comes_back_otherwise_is_told() -> None:
    pytest.importorskip("google.protobuf")
    pytest.importorskip("pyarrow")
    found = looks(protobuf.prepare(ROWS, ""))
    assert found["read all Protocol Buffers"][0].startswith("row 2: keys")  # "at" was not there


def test_one_column_read_alone_keeps_what_is_missing_missing() -> None:
    pytest.importorskip("google.protobuf")
    pytest.importorskip("pyarrow")
    rows: list[dict[str, Any]] = [{"n": 0}, {"n": None}, {"n": 3}]
    prepared = protobuf.prepare(rows, "")
    column = {arm.name: arm for arm in prepared.arms if "one column" in arm.group}
    assert set(column) == {"Protocol Buffers", "Arrow"}
    assert not any(arm.look and arm.look() for arm in column.values())
    assert protobuf._column_differs(rows, "n", lambda: [0, 0, 3]) == ["row 2: " + AS_ZERO]


AS_ZERO = "None becomes 0 (int)"


def test_names_that_only_later_rows_have_are_kept() -> None:
    pytest.importorskip("pyarrow")
    prepared = protobuf.prepare([{}, {"a": 1}, {"b": 2}], "")
    assert "3 rows of 2 columns" in prepared.sentences({})[0]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([{"id": 1}, {"id": 0.5}], "mixes int and float"),
        ([{"id": {"a": 1}}], "holds dict"),
    ],
)
def test_rows_that_no_message_can_hold_are_a_row_that_says_why(rows: Any, reason: str) -> None:
    pytest.importorskip("google.protobuf")
    pytest.importorskip("pyarrow")
    prepared = protobuf.prepare(rows, "")
    assert reason in prepared.missing[0].reason
    assert all(arm.name.startswith("Arrow") for arm in prepared.arms)


@pytest.mark.parametrize("target", [[], [1, 2], 5, [{"id": 2**64}]])
def test_what_has_no_rows_is_refused(target: Any) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(InputError):
        protobuf.prepare(target, "")


def test_every_arm_has_a_name_of_its_own() -> None:
    arms: list[Arm] = [*json_parsers.prepare([BIG], "").arms, *pickling.prepare([1], "").arms]
    assert len({arm.key for arm in arms}) == len(arms)
