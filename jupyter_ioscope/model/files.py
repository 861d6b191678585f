"""Profiles as files: JSON, a format number first, columns instead of rows.

Never pickle: a profile file is data from somebody else. A foreign or damaged file is refused with
a sentence that says which of the two it is.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import gzip
import json
import os
import tempfile
import types
import typing
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jupyter_ioscope.errors import InputError, ProfileFileError
from jupyter_ioscope.model.check import check_profile
from jupyter_ioscope.model.comparison import Comparison, Offer
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.tuning import Tuning
from jupyter_ioscope.paths import path_text, special_at

FORMAT = 1
KIND = "ioscope profile"
_INFINITE = {"Infinity": float("inf"), "-Infinity": float("-inf")}  # JSON has no such numbers


class Saved(NamedTuple):
    """What a file holds: the profile, what was offered for its loader, and what was tried."""

    profile: Profile
    offers: tuple[Offer, ...]
    comparisons: tuple[Comparison, ...]
    tunings: tuple[Tuning, ...]


def save(
    profile: Profile,
    path: str | os.PathLike[str],
    report: dict[str, Any] | None = None,
    offers: tuple[Offer, ...] = (),
    comparisons: tuple[Comparison, ...] = (),
    tunings: tuple[Tuning, ...] = (),
) -> None:
    """Write a profile; gzip when the name ends in `.gz`. The file appears whole or not at all.

    `report` is the picture of it that a viewer without Python can draw, `offers` are
    what was offered for its loader, `comparisons` and `tunings` what was tried.

    Raises:
        InputError: the path is none, or its folder does not exist.
        ProfileFileError: the file cannot be written (full disk, no permission).
    """
    target = target_of(path)
    document = {"kind": KIND, "format": FORMAT, "profile": _encode(profile)}
    found = {"offers": offers, "comparisons": comparisons, "tunings": tunings}
    for name, values in found.items():
        if values:
            document[name] = _encode(values)
    if report is not None:
        document["report"] = report
    raw = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
    if target.name.endswith(".gz"):
        raw = gzip.compress(raw, mtime=0)
    try:
        write_whole(target, raw)
    except OSError as error:
        raise ProfileFileError(
            f"cannot write {str(target)!r}: {error.strerror or error}"
        ) from error


def target_of(path: object, name: str = "path") -> Path:
    """Where a profile can be saved; `name` is the argument's, for the sentence.

    Raises:
        InputError: the path is none, or its folder does not exist.
    """
    target = Path(path_text(path, name, "the path of the file to write"))
    if not os.path.isdir(target.parent):
        raise InputError(
            f"cannot save to {str(target)!r}: the folder {target.parent} does not exist"
        )
    return target


def write_whole(target: Path, raw: bytes) -> None:
    """Write a file that appears whole or not at all.

    Raises:
        OSError: it cannot be written; nothing is left over.
    """
    if what := special_at(str(target)):  # replacing /dev/null would take it from everybody
        raise OSError(errno.EINVAL, f"it is {what}, and a file would take its place")
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(
            dir=target.parent, prefix=".ioscope-", delete=False
        ) as file:
            temporary = file.name
            file.write(raw)
        os.replace(temporary, target)
    except BaseException:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise


def load(path: str | os.PathLike[str]) -> Profile:
    """Read a profile back.

    Raises:
        InputError: the path is none.
        ProfileFileError: the file cannot be read, is no profile, is damaged, or has a format
            this version does not know.
    """
    return load_all(path).profile


def load_all(path: str | os.PathLike[str]) -> Saved:
    """Read back everything that `save` wrote except the picture; raises as `load` does."""
    name = path_text(path, wanted="the path of a saved profile")
    if what := special_at(name):
        raise ProfileFileError(f"{name!r} is {what}: give the path of a saved profile")
    try:
        raw = Path(name).read_bytes()
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
    except FileNotFoundError as error:
        raise ProfileFileError(f"there is no file {name!r}") from error
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise ProfileFileError(f"{name!r} cannot be read: {why}") from error
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ProfileFileError(
            f"{name!r} is damaged or no ioscope profile: it is not complete JSON"
        ) from error
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise ProfileFileError(f"{name!r} is no ioscope profile: it does not say it is one")
    if document.get("format") != FORMAT:
        raise ProfileFileError(
            f"{name!r} has format {document.get('format')!r}; this ioscope reads format "
            f"{FORMAT}: save it again with the version that wrote it, or install that version"
        )
    try:
        profile = _decode(Profile, document.get("profile"), "profile")
        offers = _decode(tuple[Offer, ...], document.get("offers", []), "offers")
        comparisons = _decode(
            tuple[Comparison, ...], document.get("comparisons", []), "comparisons"
        )
        tunings = _decode(tuple[Tuning, ...], document.get("tunings", []), "tunings")
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise ProfileFileError(f"{name!r} is damaged: {error}") from error
    problems = check_profile(profile)
    if problems:
        raise ProfileFileError(f"{name!r} is damaged: {problems[0]}")
    return Saved(profile, offers, comparisons, tunings)


def encoded(value: Any) -> Any:
    """A frozen value of `model` as what JSON knows."""
    return _encode(value)


def decoded(kind: Any, value: Any, where: str) -> Any:
    """The frozen value of type `kind` that `encoded` made; `where` names the place in errors.

    Raises:
        TypeError, ValueError, KeyError, AttributeError: it is damaged or foreign.
    """
    return _decode(kind, value, where)


def _encode(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: _encode(item) for name, item in zip(value._fields, value, strict=True)}
    if isinstance(value, tuple):
        if value and isinstance(value[0], tuple) and hasattr(value[0], "_fields"):
            return _columns(value)
        return [_encode(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    if isinstance(value, float) and value - value != 0:
        return None if value != value else next(k for k, v in _INFINITE.items() if v == value)
    return value


def _columns(rows: tuple[Any, ...]) -> dict[str, list[Any]]:
    """Rows of one named-tuple type as one list a field: a third of the size, and typed on sight."""
    return {
        name: [_encode(row[position]) for row in rows]
        for position, name in enumerate(rows[0]._fields)
    }


def _decode(kind: Any, value: Any, where: str) -> Any:
    """`value` as `kind`, a type from `model`; anything unexpected raises with the place named."""
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        options = [option for option in typing.get_args(kind) if option is not type(None)]
        return None if value is None else _decode(options[0], value, where)
    if origin is tuple:
        return _decode_tuple(typing.get_args(kind), value, where)
    if origin is not None and issubclass(origin, Mapping):
        item = typing.get_args(kind)[1]
        _expect(isinstance(value, dict), where, "an object")
        return types.MappingProxyType(
            {key: _decode(item, entry, f"{where}.{key}") for key, entry in value.items()}
        )
    if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"):
        return _decode_record(kind, value, where)
    return _decode_plain(kind, value, where)


def _decode_tuple(items: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if len(items) == 2 and items[1] is Ellipsis:
        if isinstance(value, dict) and hasattr(items[0], "_fields"):
            return _decode_columns(items[0], value, where)
        _expect(isinstance(value, list), where, "a list")
        if items[0] in (int, float, str):
            return _decode_numbers(items[0], value, where)
        return tuple(_decode(items[0], entry, where) for entry in value)
    _expect(isinstance(value, list) and len(value) == len(items), where, f"{len(items)} values")
    return tuple(_decode(kind, entry, where) for kind, entry in zip(items, value, strict=True))


def _decode_numbers(kind: type, values: list[Any], where: str) -> tuple[Any, ...]:
    allowed = (int, float) if kind is float else (kind,)
    for entry in values:
        _expect(type(entry) in allowed, where, f"only {kind.__name__}")
    return tuple(values)


def _decode_columns(kind: Any, value: dict[str, Any], where: str) -> tuple[Any, ...]:
    hints = typing.get_type_hints(kind)
    known = set(kind._fields)
    needed = known - set(kind._field_defaults)  # an older file lacks the newest columns
    _expect(needed <= set(value) <= known, where, f"the columns {', '.join(kind._fields)}")
    length = max((len(column) for column in value.values() if isinstance(column, list)), default=0)
    columns = [
        _decode_tuple((hints[name], Ellipsis), value[name], f"{where}.{name}")
        if name in value
        else (kind._field_defaults[name],) * length
        for name in kind._fields
    ]
    _expect(len({len(column) for column in columns}) <= 1, where, "columns of one length")
    return tuple(kind(*row) for row in zip(*columns, strict=True))


def _decode_record(kind: Any, value: Any, where: str) -> Any:
    _expect(isinstance(value, dict), where, "an object")
    hints = typing.get_type_hints(kind)
    unknown = set(value) - set(hints)
    _expect(not unknown, where, f"no field {', '.join(sorted(map(str, unknown)))}")
    return kind(**{n: _decode(hints[n], v, f"{where}.{n}") for n, v in value.items()})


def _decode_plain(kind: Any, value: Any, where: str) -> Any:
    if kind is float:
        if isinstance(value, str) and value in _INFINITE:
            return _INFINITE[value]
        _expect(isinstance(value, (int, float)) or value is None, where, "a number")
        return float("nan") if value is None else float(value)
    _expect(type(value) is kind, where, kind.__name__)
    return value


def _expect(holds: bool, where: str, what: str) -> None:
    if not holds:
        raise ValueError(f"{where} should be {what}")
