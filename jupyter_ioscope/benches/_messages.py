"""Rows as Protocol Buffers messages of a type that is made from them."""

from __future__ import annotations

from typing import Any

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.optional import need

_LABEL_OPTIONAL, _LABEL_REPEATED = 1, 3
# Python type -> (number of the type in descriptor.proto, its name)
_TYPES: dict[type, tuple[int, str]] = {
    float: (1, "double"),
    int: (3, "int64"),
    bool: (8, "bool"),
    str: (9, "string"),
    bytes: (12, "bytes"),
}


class Coder:
    """Writes rows as messages with their lengths before them, and reads them again.

    Attributes:
        notes: what the message type could not carry over from the rows.

    Raises:
        InputError: a column has no type that a message can have.
    """

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._lists: dict[str, bool] = {}
        self._names = list(dict.fromkeys(name for row in rows for name in row))
        how = need("google.protobuf.internal.api_implementation", "Protocol Buffers").Type()
        self.notes = [f"Protocol Buffers ran on its {how!r} implementation."]
        message = _pb().DescriptorProto(name="Row")
        for number, name in enumerate(self._names, 1):
            kind, repeated = _kind(name, [row.get(name) for row in rows])
            self._lists[name] = repeated
            field = message.field.add(
                # Names in a message are letters, digits and underscores: fields go by number.
                name=f"f{number}",
                number=number,
                type=_TYPES[kind][0],
                label=_LABEL_REPEATED if repeated else _LABEL_OPTIONAL,
            )
            if not repeated:  # presence, so that 0 and "nothing" are told apart
                field.proto3_optional = True
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_f{number}")
        self._fields = {name: f"f{number}" for number, name in enumerate(self._names, 1)}
        self._class = _class_of(message)
        if any(self._lists.values()):
            self.notes.append("In a message, a list that is empty and one that is None are alike.")

    def write(self, rows: list[dict[str, Any]]) -> bytes:
        parts = []
        for row in rows:
            message = self._class()
            for name, value in row.items():
                if value is None:
                    continue
                if self._lists[name]:
                    getattr(message, self._fields[name]).extend(value)
                else:
                    setattr(message, self._fields[name], value)
            data = message.SerializeToString()
            parts += [len(data).to_bytes(4, "little"), data]
        return b"".join(parts)

    def read(self, data: bytes) -> list[dict[str, Any]]:
        fields = [(name, self._fields[name], self._lists[name]) for name in self._names]
        rows = []
        for message in self._messages(data):
            row: dict[str, Any] = {}
            for name, field, repeated in fields:
                if repeated:
                    row[name] = list(getattr(message, field))
                else:
                    row[name] = getattr(message, field) if message.HasField(field) else None
            rows.append(row)
        return rows

    def column(self, data: bytes, name: str) -> list[Any]:
        field = self._fields[name]
        if self._lists[name]:
            return [list(getattr(message, field)) for message in self._messages(data)]
        return [
            getattr(message, field) if message.HasField(field) else None
            for message in self._messages(data)
        ]

    def _messages(self, data: bytes) -> Any:
        at, parse = 0, self._class.FromString
        while at < len(data):
            size = int.from_bytes(data[at : at + 4], "little")
            yield parse(data[at + 4 : at + 4 + size])
            at += 4 + size


def _kind(name: str, values: list[Any]) -> tuple[type, bool]:
    """(type of a column, whether it holds lists)."""
    there = [value for value in values if value is not None]
    repeated = bool(there) and all(isinstance(value, (list, tuple)) for value in there)
    items = [item for value in there for item in value] if repeated else there
    kinds = {type(item) for item in items}
    kind = next(iter(kinds), str)
    if kinds == {int, float}:
        raise InputError(f"column {name!r} mixes int and float: a field has one type")
    if len(kinds) > 1 or kind not in _TYPES:
        names = ", ".join(sorted(one.__name__ for one in kinds))
        raise InputError(f"column {name!r} holds {names}: a field holds numbers, texts or bytes")
    if kind is int and not all(-(2**63) <= item < 2**63 for item in items):
        raise InputError(f"column {name!r} holds integers beyond 64 bits")
    return kind, repeated


def _class_of(message: Any) -> Any:
    pool_module: Any = need("google.protobuf.descriptor_pool", "Protocol Buffers")
    factory: Any = need("google.protobuf.message_factory", "Protocol Buffers")
    file = _pb().FileDescriptorProto(name="rows.proto", package="rows", syntax="proto3")
    file.message_type.append(message)
    pool = pool_module.DescriptorPool()
    pool.Add(file)
    return factory.GetMessageClass(pool.FindMessageTypeByName("rows.Row"))


def _pb() -> Any:
    return need("google.protobuf.descriptor_pb2", "Protocol Buffers")
