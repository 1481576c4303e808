"""Reading a message into the JSON value that Go would write for it.

Go's protobuf writes every field that is not a pointer, zeros included, and its JSON leaves out zeros where the field
says so: both ways of sending an object must give the same object, so zeros are dropped here by the same rule.
"""

from __future__ import annotations

import lzma
from base64 import b64encode
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from typing import Any

import msgspec

from shoal.embedded.apiserver.protobuf.special import READERS
from shoal.embedded.apiserver.protobuf.stored import StoredField, StoredTable
from shoal.embedded.apiserver.protobuf.wire import (
    BYTES,
    FIXED32,
    FIXED64,
    VARINT,
    Value,
    WireError,
    double,
    fields,
    signed,
    single,
    text,
    varint,
)

Obj = dict[str, Any]

_DEEPEST = 100
_KINDS = {"int": VARINT, "uint": VARINT, "bool": VARINT, "double": FIXED64, "float": FIXED32}
_ABSENT: dict[str, Any] = {"string": "", "bytes": "", "int": 0, "uint": 0, "bool": False, "double": 0.0, "float": 0.0}


class Messages:
    """The table of messages, read once."""

    def __init__(self, table: StoredTable) -> None:
        self._kinds = table.kinds
        self._fields = {name: {field.number: field for field in found} for name, found in table.messages.items()}

    def of_kind(self, api_version: str, kind: str) -> str | None:
        """The message of a kind. Options and the like are spoken in every group's version."""
        return self._kinds.get(f"{api_version} {kind}") or self._kinds.get(f"meta.k8s.io/v1 {kind}")

    def names(self) -> Iterable[str]:
        return self._fields

    def fields(self, message: str) -> Iterable[StoredField]:
        return self._fields[message].values()

    def read(self, message: str, data: memoryview, depth: int = 0) -> Obj:
        if depth > _DEEPEST:
            raise WireError("proto: message is nested too deeply")
        known = self._fields[message]
        obj: Obj = {}
        for number, kind, value in fields(data):
            field = known.get(number)
            if field is not None:
                self._put(obj, field, kind, value, depth)
        return obj

    def _put(self, obj: Obj, field: StoredField, kind: int, value: Value, depth: int) -> None:
        if field.is_map:
            key, found = self._entry(field, kind, value, depth)
            obj.setdefault(field.name, {})[key] = found
        elif field.is_list:
            obj.setdefault(field.name, []).extend(self._items(field, kind, value, depth))
        else:
            found = self._value(field, kind, value, depth)
            if not field.name and field.type == "message":
                obj.update(found)
            elif found is not None and (field.keeps_zero or _is_kept(field, found)):
                obj[field.name] = found

    def _items(self, field: StoredField, kind: int, value: Value, depth: int) -> list[Any]:
        if _KINDS.get(field.type) != VARINT or isinstance(value, int):
            return [self._value(field, kind, value, depth)]
        packed, at = [], 0
        while at < len(value):
            number, at = varint(value, at)
            packed.append(_plain(field.type, number))
        return packed

    def _entry(self, field: StoredField, kind: int, value: Value, depth: int) -> tuple[str, Any]:
        """One entry of a map: a message of its key and its value."""
        if kind != BYTES or isinstance(value, int):
            raise _wrong(field, kind)
        key, found = "", _empty(field)
        for number, inner_kind, inner in fields(value):
            if number == 1 and not isinstance(inner, int):
                key = text(inner)
            elif number == 2:
                one = self._value(field, inner_kind, inner, depth) if not field.is_list else None
                found = one if one is not None else found
        return key, found

    def _value(self, field: StoredField, kind: int, value: Value, depth: int) -> Any:
        if kind != _KINDS.get(field.type, BYTES):
            raise _wrong(field, kind)
        if isinstance(value, int) or kind != BYTES:
            return _plain(field.type, value)
        if field.type == "message":
            return self.read(field.message, value, depth + 1)
        if field.type == "string":
            return text(value)
        if field.type == "bytes":
            return b64encode(value).decode()
        return READERS[field.type](value)


def _plain(kind: str, value: Value) -> Any:
    if isinstance(value, int):
        return bool(value) if kind == "bool" else signed(value) if kind == "int" else value
    return double(value) if kind == "double" else single(value)


def _empty(field: StoredField) -> Any:
    if field.type in _ABSENT:
        return _ABSENT[field.type]
    return {} if field.type == "message" else READERS[field.type](memoryview(b""))


def _is_kept(field: StoredField, value: Any) -> bool:
    """Structs are never empty to Go, nor is a quantity of zero."""
    return field.type in ("message", "Quantity", "IntOrString", "Duration") or bool(value)


def _wrong(field: StoredField, kind: int) -> WireError:
    return WireError(f"proto: wrong wireType = {kind} for field {field.name[:1].upper()}{field.name[1:]}")


@lru_cache(maxsize=1)
def messages() -> Messages:
    packed = files("shoal.data").joinpath("kubernetes/protobuf.json.xz").read_bytes()
    return Messages(msgspec.json.decode(lzma.decompress(packed), type=StoredTable))


def read_object(api_version: str, kind: str, data: bytes) -> Obj:
    """An object without the envelope of the API. Raises WireError."""
    table = messages()
    message = table.of_kind(api_version, kind)
    if message is None:
        raise WireError(f"{api_version} {kind} is not known")
    return table.read(message, memoryview(data))
