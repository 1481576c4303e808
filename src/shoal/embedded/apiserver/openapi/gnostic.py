"""The version 2 document in the protobuf form of gnostic, which is the only one that client-go takes.

Field numbers are those of gnostic's `OpenAPIv2.proto`, of which only what our documents use is written. Free-form
values travel as YAML text; JSON is YAML.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import msgspec

from shoal.embedded.apiserver.openapi.dialect import Json

_METHODS = (("get", 2), ("put", 3), ("post", 4), ("delete", 5), ("patch", 8))
_SCHEMA_NUMBERS = (("multipleOf", 6), ("maximum", 7), ("minimum", 9))
_SCHEMA_COUNTS = (
    *(("maxLength", 11), ("minLength", 12), ("maxItems", 14)),
    *(("minItems", 15), ("maxProperties", 17), ("minProperties", 18)),
)
_SCHEMA_SWITCHES = (("exclusiveMaximum", 8), ("exclusiveMinimum", 10), ("uniqueItems", 16))


def encode_document(document: Json) -> bytes:
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    paths = b"".join(_part(2, _named(path, _path_item(item))) for path, item in document["paths"].items())
    definitions = b"".join(_part(1, _named(name, _schema(one))) for name, one in document["definitions"].items())
    return _text(1, document["swagger"]) + _part(2, info) + _part(8, paths) + _part(9, definitions)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def _part(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _text(number: int, text: str) -> bytes:
    return _part(number, text.encode()) if text else b""


def _texts(number: int, texts: Iterable[str]) -> bytes:
    return b"".join(_part(number, text.encode()) for text in texts)


def _count(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value & 0xFFFF_FFFF_FFFF_FFFF) if value else b""


def _double(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", value)


def _any(value: Any) -> bytes:
    return _text(2, msgspec.json.encode(value).decode() + "\n")


def _named(name: str, content: bytes) -> bytes:
    return _text(1, name) + _part(2, content)


def _extensions(number: int, found: Json) -> bytes:
    return b"".join(_part(number, _named(key, _any(one))) for key, one in found.items() if key.startswith("x-"))


def _path_item(item: Json) -> bytes:
    operations = b"".join(_part(number, _operation(item[method])) for method, number in _METHODS if method in item)
    return operations + b"".join(_part(9, _parameter(one)) for one in item.get("parameters", ()))


def _operation(found: Json) -> bytes:
    responses = b"".join(
        _part(1, _named(code, _part(1, _response(one)))) for code, one in found.get("responses", {}).items()
    )
    return b"".join(
        (
            _texts(1, found.get("tags", ())),
            _text(3, found.get("description", "")),
            _text(5, found.get("operationId", "")),
            _texts(6, found.get("produces", ())),
            _texts(7, found.get("consumes", ())),
            *(_part(8, _parameter(one)) for one in found.get("parameters", ())),
            _part(9, responses),
            _extensions(13, found),
        )
    )


def _response(found: Json) -> bytes:
    schema = _part(2, _part(1, _schema(found["schema"]))) if "schema" in found else b""
    return _text(1, found.get("description", "")) + schema


def _parameter(found: Json) -> bytes:
    """A ParametersItem: in the body, in the path or in the query."""
    place, needed = found["in"], _count(4 if found["in"] == "body" else 1, int(found.get("required", False)))
    if place == "body":
        body = _text(2, found["name"]) + _text(3, place) + needed + _part(5, _schema(found["schema"]))
        return _part(1, _part(1, body))
    name, kind = _text(4, found["name"]), found.get("type", "string")
    if place == "path":
        return _part(1, _part(2, _part(4, needed + _text(2, place) + name + _text(5, kind))))
    return _part(1, _part(2, _part(3, needed + _text(2, place) + name + _text(6, kind))))


def _schema(found: Json) -> bytes:
    parts = [
        _text(1, found.get("$ref", "")),
        _text(2, found.get("format", "")),
        _text(3, found.get("title", "")),
        _text(4, found.get("description", "")),
        _part(5, _any(found["default"])) if "default" in found else b"",
        _text(13, found.get("pattern", "")),
        _texts(19, found.get("required", ())),
        *(_part(20, _any(one)) for one in found.get("enum", ())),
    ]
    parts += [_double(number, found[key]) for key, number in _SCHEMA_NUMBERS if key in found]
    parts += [_count(number, found[key]) for key, number in _SCHEMA_COUNTS if key in found]
    parts += [_count(number, int(found[key])) for key, number in _SCHEMA_SWITCHES if key in found]
    more = found.get("additionalProperties")
    if isinstance(more, bool):
        parts.append(_part(21, _count(2, int(more))))
    elif more is not None:
        parts.append(_part(21, _part(1, _schema(more))))
    if "type" in found:
        parts.append(_part(22, _text(1, found["type"])))
    if isinstance(found.get("items"), dict):
        parts.append(_part(23, _part(1, _schema(found["items"]))))
    if "properties" in found:
        named = (_part(1, _named(key, _schema(one))) for key, one in found["properties"].items())
        parts.append(_part(25, b"".join(named)))
    parts.append(_extensions(31, found))
    return b"".join(parts)
