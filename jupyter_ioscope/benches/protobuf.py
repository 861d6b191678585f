"""Protocol Buffers against Arrow on the user's own rows: write, read all, read one column.

The message type is made from the rows at run time, as a .proto file with optional fields would be.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jupyter_ioscope.benches import _messages
from jupyter_ioscope.benches._arrays import array_or_table
from jupyter_ioscope.benches._bench import Arm, Bench, Found, Missing, Pass, Prepared
from jupyter_ioscope.benches._forks import short
from jupyter_ioscope.benches._targets import is_path
from jupyter_ioscope.errors import InputError
from jupyter_ioscope.optional import installed, need
from jupyter_ioscope.trials.toggles._json_swap import difference
from jupyter_ioscope.units import bytes_text

_TAKES = (
    "a list of rows (dicts), a table (pandas, pyarrow, datasets), or the path of a .jsonl, "
    ".parquet, .arrow or .csv file"
)
_MOST_ROWS = 2000
_PROTOBUF, _ARROW, _ROWS = "Protocol Buffers", "Arrow", "Arrow, as Python rows"


def prepare(target: Any, folder: str) -> Prepared:
    need("pyarrow", "the bench of Protocol Buffers against Arrow")
    rows, name = _rows(target)
    arrow: Any = need("pyarrow", "Arrow")
    try:
        table = _table(rows)
    except (arrow.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise InputError(f"the rows of {name} have no common type: {short(error)}") from error
    missing: list[Missing] = []
    coder = None
    if not installed("google.protobuf"):
        missing.append(Missing(_PROTOBUF, "not installed: pip install protobuf"))
    else:
        try:
            coder = _messages.Coder(rows)
            coder.read(coder.write(rows))
        except Exception as error:
            missing.append(Missing(_PROTOBUF, f"cannot hold the rows: {short(error)}"))
    data = _write_arrow(table)
    arms = _arms(rows, table, coder, data)
    notes = [
        f"{len(rows):,} rows of {len(table.column_names)} columns, {bytes_text(len(data))} as an "
        "Arrow stream.",
        "Reading Arrow as a table makes no Python objects: that is what the speed is. Where the "
        "loop needs Python rows, 'Arrow, as Python rows' is the one to compare.",
    ]
    if coder is not None:
        notes += coder.notes

    def sentences(_found: Found) -> Sequence[str]:
        return notes

    return Prepared(name, tuple(arms), tuple(missing), sentences=sentences, code=_code)


def _arms(rows: list[dict[str, Any]], table: Any, coder: Any, data: bytes) -> list[Arm]:
    column = table.column_names[0]
    arms: list[Arm] = []

    def add(group: str, name: str, work: Callable[[], object], size: int,
            look: Callable[[], Sequence[str]] | None = None) -> None:  # fmt: skip
        arms.append(Arm(name, functools.partial(_open, work), len(rows), bytes=size, group=group,
                        look=look, size_bytes=size))  # fmt: skip

    one = f"read one column ({column})"
    if coder is not None:
        sent = coder.write(rows)
        looks = functools.partial(_rows_differ, rows, functools.partial(coder.read, sent))
        add("write", _PROTOBUF, functools.partial(coder.write, rows), len(sent), looks)
        add("read all", _PROTOBUF, functools.partial(coder.read, sent), len(sent), looks)
        values = functools.partial(coder.column, sent, column)
        add(
            one,
            _PROTOBUF,
            values,
            len(sent),
            functools.partial(_column_differs, rows, column, values),
        )
    back = functools.partial(_rows_differ, rows, functools.partial(_to_rows, data))
    add("write", _ARROW, functools.partial(_write_arrow, table), len(data), back)
    add("write", _ROWS, functools.partial(_write_rows, rows), len(data), back)
    add("read all", _ARROW, functools.partial(_read_arrow, data), len(data), back)
    add("read all", _ROWS, functools.partial(_to_rows, data), len(data), back)
    values = functools.partial(_column, data, column)
    add(one, _ARROW, values, len(data), functools.partial(_column_differs, rows, column, values))
    order = ("write", "read all", one)
    return sorted(arms, key=lambda arm: order.index(arm.group))


def _open(work: Callable[[], object]) -> Pass:
    def once() -> None:
        work()

    return once


def _rows(target: Any) -> tuple[list[dict[str, Any]], str]:
    """(rows, name of the target).

    Raises:
        InputError: there are none.
    """
    if is_path(target) and str(target).endswith((".jsonl", ".json")):
        from jupyter_ioscope.benches.json_parsers import lines_of, outcome

        lines, name, _ = lines_of(target)
        found = [outcome("json", line) for line in lines[:_MOST_ROWS]]
    elif isinstance(target, (list, tuple)):
        found, name = list(target[:_MOST_ROWS]), f"{len(target):,} rows"
    else:
        data, name = array_or_table(target, _TAKES)
        if not hasattr(data, "to_pylist"):
            raise InputError(f"{name} is an array, and has no rows with names: give {_TAKES}")
        found = data.slice(0, _MOST_ROWS).to_pylist()
    if not found or not all(isinstance(row, Mapping) for row in found) or not any(found):
        raise InputError(f"{name} holds no rows with names: give {_TAKES}")
    return [dict(row) for row in found], name


def _write_arrow(table: Any) -> bytes:
    arrow, ipc = need("pyarrow", "Arrow"), need("pyarrow.ipc", "Arrow")
    sink = arrow.BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _table(rows: list[dict[str, Any]]) -> Any:
    """Not by `from_pylist`, which keeps the names of the first row only."""
    names = dict.fromkeys(name for row in rows for name in row)
    return need("pyarrow", "Arrow").table({name: [row.get(name) for row in rows] for name in names})


def _write_rows(rows: list[dict[str, Any]]) -> bytes:
    return _write_arrow(_table(rows))


def _read_arrow(data: bytes) -> Any:
    return need("pyarrow.ipc", "Arrow").open_stream(data).read_all()


def _to_rows(data: bytes) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = _read_arrow(data).to_pylist()
    return rows


def _column(data: bytes, name: str) -> Any:
    return _read_arrow(data).column(name)


def _column_differs(rows: list[dict[str, Any]], name: str, read: Callable[[], Any]) -> list[str]:
    found = read()
    values = found.to_pylist() if hasattr(found, "to_pylist") else found
    wanted = [{name: row.get(name)} for row in rows]
    return _rows_differ(wanted, lambda: [{name: value} for value in values])


def _rows_differ(rows: list[dict[str, Any]], read: Callable[[], list[dict[str, Any]]]) -> list[str]:
    found = []
    for number, (want, have) in enumerate(zip(rows, read(), strict=True), 1):
        # A missing name and an empty value are told as what they become.
        if text := difference(want, have):
            found.append(f"row {number:,}: {text}")
    return found if len(found) <= 3 else [*found[:3], f"and {len(found) - 3:,} more rows"]


def _code(arm: Arm) -> str:
    if arm.name.startswith("Arrow"):
        return "table = pa.ipc.open_stream(data).read_all()"
    return ""


BENCH = Bench("protobuf", "Protocol Buffers against Arrow", _TAKES, "row", prepare)
