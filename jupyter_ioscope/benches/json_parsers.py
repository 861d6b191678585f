"""JSON parsers on the user's own lines and on lines that are known to trip parsers up."""

from __future__ import annotations

import datetime
import decimal
import functools
import importlib
import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jupyter_ioscope.arguments import kind
from jupyter_ioscope.benches._bench import Arm, Bench, Found, Missing, Pass, Prepared
from jupyter_ioscope.benches._forks import short
from jupyter_ioscope.benches._targets import file_of, is_path, really
from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model.bench import BenchTable
from jupyter_ioscope.optional import installed
from jupyter_ioscope.trials.toggles._json_swap import difference
from jupyter_ioscope.units import bytes_text

_TAKES = "the path of a .jsonl or .json file, or a list of JSON texts"
_MOST_BYTES, _MOST_LINES = 8 << 20, 20_000
_MOST_UNREAD_FRACTION = 0.5  # of all bytes: beyond that it is no file of JSON with bad lines
_TOLD = 3  # differences on the user's lines that are quoted

# parser -> (module, attribute path, distribution)
PARSERS = {
    "json": ("json", "loads", ""),
    "orjson": ("orjson", "loads", "orjson"),
    "ujson": ("ujson", "loads", "ujson"),
    "rapidjson": ("rapidjson", "loads", "python-rapidjson"),
    "msgspec": ("msgspec.json", "decode", "msgspec"),
}

# what -> a text. Each is a case that RFC 8259 leaves open, forbids, or that overflows a type.
PROBES: dict[str, bytes] = {
    "integer of 65 bits": b"[18446744073709551616]",
    "integer of 64 bits": b"[18446744073709551615]",
    "integer of 5,000 digits": b"[" + b"9" * 5000 + b"]",
    "17 digits of a fraction": b"[0.30000000000000004]",
    "number beyond float": b"[1e400]",
    "minus zero": b"[-0.0, -0]",
    "NaN": b"[NaN]",
    "Infinity": b"[Infinity, -Infinity]",
    "date": b'["2024-02-29T23:59:60Z"]',
    "duplicate key": b'{"a": 1, "a": 2}',
    "invalid UTF-8": b'["\xff\xfe"]',
    "lone surrogate": b'["\\ud800"]',
    "control character": b'["a\tb"]',
    "NUL in a text": b'["a\\u0000b"]',
    "byte order mark": b"\xef\xbb\xbf[1]",
    "comma at the end": b"[1, 2,]",
    "comment": b"[1] // one",
    "something after the end": b"[1] [2]",
    "leading zero": b"[01]",
    "2,000 brackets deep": b"[" * 2000 + b"]" * 2000,
    "nothing": b"",
}


# what -> a value to be written
WRITTEN: dict[str, Any] = {
    "NaN": math.nan,
    "integer of 65 bits": 2**64,
    "date and time": datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone.utc),
    "date": datetime.date(2024, 2, 29),
    "number as a key": {1: 2},
    "tuple": (1, 2),
    "set": {1},
    "decimal": decimal.Decimal("0.10"),
    "bytes": b"ab",
    "lone surrogate": "\ud800",
}
_WRITERS = {"msgspec": "encode"}


def prepare(target: Any, folder: str) -> Prepared:
    lines, name, notes = lines_of(target)
    size = sum(map(len, lines))
    there = [parser for parser in PARSERS if installed(PARSERS[parser][0].partition(".")[0])]
    for parser in there:
        _call(parser)  # imported once, not in every run
    arms = tuple(
        Arm(
            parser,
            functools.partial(_open, parser, lines),
            len(lines),
            bytes=size,
            look=functools.partial(_differences, parser, lines) if parser != "json" else None,
        )
        for parser in there
    )
    missing = tuple(
        Missing(parser, f"not installed: pip install {package}")
        for parser, (_, _, package) in PARSERS.items() if parser not in there
    )  # fmt: skip

    def tables(_found: Found) -> list[BenchTable]:
        return [_probe_table(there), _write_table(there)]

    def sentences(_found: Found) -> Sequence[str]:
        return notes

    return Prepared(name, arms, missing, tables, sentences, _code)


def lines_of(target: Any) -> tuple[list[bytes], str, list[str]]:
    """(texts, name of the target, what to say of them).

    Raises:
        InputError: there are none, or the standard parser reads none of them.
    """
    if is_path(target):
        path, size = file_of(target, _TAKES)
        lines, name = _of_file(path, size), path
        notes = [f"{len(lines):,} texts of {bytes_text(sum(map(len, lines)))} from {path}."]
    elif isinstance(target, (list, tuple)) and target:
        if not all(isinstance(text, (str, bytes)) for text in target):
            raise InputError("target holds something else than JSON texts: give str or bytes")
        lines = [t.encode("utf-8", "surrogatepass") if isinstance(t, str) else bytes(t)
                 for t in target[:_MOST_LINES]]  # fmt: skip
        name, notes = f"{len(target):,} texts", []
        if len(lines) < len(target):
            notes = [f"The first {len(lines):,} of {len(target):,} texts were read."]
    else:
        raise InputError(f"target is {_what(target)}: give {_TAKES}")
    refused = [isinstance(outcome("json", line), Refusal) for line in lines]
    unread = list(itertools.compress(lines, refused))
    # Digits alone in a line are JSON, too: a file of anything else has some by chance.
    if sum(map(len, unread)) > _MOST_UNREAD_FRACTION * sum(map(len, lines)) or all(refused):
        said = outcome("json", unread[0])
        how = "no" if all(refused) else "hardly any"
        what = f"; it is {really(path)}" if is_path(target) else ""
        raise InputError(f"{name} holds {how} JSON that the standard parser reads ({said}){what}")
    if unread:
        notes.append(f"{len(unread):,} texts that the standard parser refuses were left out.")
        lines = [line for line, bad in zip(lines, refused, strict=True) if not bad]
    return lines, name, notes


def _what(target: Any) -> str:
    return "empty" if isinstance(target, (list, tuple)) else kind(target)


def _of_file(path: str, size: int) -> list[bytes]:
    """Lines of a file; the whole of it where it is one JSON text over several lines."""
    with open(path, "rb") as file:
        data = file.read(_MOST_BYTES)
    lines = [line for line in data.split(b"\n") if line.strip()]
    if size > len(data) and len(lines) > 1:
        lines.pop()  # cut in the middle
    first = outcome("json", lines[0]) if lines else None
    if size <= len(data) and isinstance(first, Refusal):
        whole = outcome("json", data)
        if not isinstance(whole, Refusal):
            return [data]
    return lines[:_MOST_LINES]


def _call(parser: str) -> Callable[[bytes], Any]:
    module, name, _ = PARSERS[parser]
    found: Callable[[bytes], Any] = getattr(importlib.import_module(module), name)
    return found


def _open(parser: str, lines: list[bytes]) -> Pass:
    call = _call(parser)
    read = [line for line in lines if not isinstance(outcome(parser, line), Refusal)]
    if not read:
        raise ValueError(f"it refuses every text ({outcome(parser, lines[0])})")

    def once() -> Mapping[str, float]:
        for line in read:
            call(line)
        return {"items": len(read)}

    return once


class Refusal(str):
    """What a parser raised instead of giving a value."""


def outcome(parser: str, text: bytes) -> Any:
    """The value that a parser reads out of a text, or its `Refusal`."""
    try:
        return _call(parser)(text)
    except Exception as error:  # RecursionError among them
        return Refusal(short(error)[:120])


def _differences(parser: str, lines: list[bytes]) -> list[str]:
    """What comes out otherwise than from the standard parser, on the user's own lines."""
    found = list(_differing(parser, lines))
    told = found[:_TOLD]
    if len(found) > _TOLD:
        told.append(f"and {len(found) - _TOLD:,} more of {len(lines):,} texts")
    return told


def _differing(parser: str, lines: list[bytes]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        mine = outcome(parser, line)
        if isinstance(mine, Refusal):
            yield f"text {number:,} is refused: {mine}"
        elif text := difference(outcome("json", line), mine):
            yield f"text {number:,}: {text}"


def _probe_table(parsers: Sequence[str]) -> BenchTable:
    rows = [
        _row(what, {parser: _shown(outcome(parser, text)) for parser in parsers})
        for what, text in PROBES.items()
    ]
    return BenchTable(
        "Lines that trip parsers up",
        (("", "json reads", "others"), *rows),
        (
            "No parser makes dates: they stay texts, also with seconds that do not exist. Of a "
            "key that comes twice, all keep the last value without a word.",
        ),
    )


def _row(what: str, found: Mapping[str, str]) -> tuple[str, str, str]:
    """(case, outcome of the standard parser, those of the parsers that differ)."""
    standard = found["json"]
    others: dict[str, list[str]] = {}
    for parser, text in found.items():
        if text != standard:
            others.setdefault(text, []).append(parser)
    told = "; ".join(f"{', '.join(names)}: {text}" for text, names in others.items())
    return what, standard, told or "the same"


def _write_table(parsers: Sequence[str]) -> BenchTable:
    rows = [
        _row(what, {parser: written(parser, value) for parser in parsers})
        for what, value in WRITTEN.items()
    ]
    title = "What they make of values that JSON has no form for"
    return BenchTable(title, (("", "json writes", "others"), *rows))


def written(parser: str, value: Any) -> str:
    """The text that a parser's library writes for a value, without spaces, or "refuses"."""
    module = importlib.import_module(PARSERS[parser][0])
    try:
        text = getattr(module, _WRITERS.get(parser, "dumps"))(value)
        plain = text.decode() if isinstance(text, bytes) else str(text)
    except Exception:
        return "refuses"
    return plain.replace(" ", "") if len(plain) <= 32 else f"writes {len(plain):,} characters"


def _shown(value: Any) -> str:
    if isinstance(value, Refusal):
        return "refuses"
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], float):
        number = value[0]
        return repr(number) if math.isfinite(number) else str(number)
    try:
        text = json.dumps(value)
    except (RecursionError, ValueError):  # too deep, or too many digits, to be written again
        return "reads it"
    return text if len(text) <= 32 else f"reads it ({len(text):,} characters)"


def _code(arm: Arm) -> str:
    if arm.name == "json":
        return ""
    module, name, _ = PARSERS[arm.name]
    return f"import {module}\n\nvalue = {module}.{name}(line)  # instead of json.loads(line)"


BENCH = Bench("json", "JSON parsers", _TAKES, "text", prepare)
