"""The static type of an expression: what is known of a value before there is one.

Objects know their fields from the published schema, so that a misspelt field is refused when a definition is written.
Where nothing is known the kind is `dyn`, and what does not fit is found when it is evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Published = Mapping[str, Any]
UNBOUNDED = 3 * 1024 * 1024
"""How many items something without a bound may have: as many as bytes go into a request."""
UNSIZED = 2**50
"""Of texts that are made of other values: Kubernetes' estimate knows no bound of their length."""


class CelType:
    """A type, with what it holds and how much of it there can be."""

    __slots__ = ("fields", "items", "most", "name", "published")

    def __init__(self, name: str, items: CelType | None = None, most: int = UNBOUNDED) -> None:
        self.name = name
        self.items = items
        self.most = most
        self.published: Published | None = None
        """Of an object: its schema; fields are looked up when they are asked for, since schemas may be large."""
        self.fields: dict[str, CelType] | None = None

    def field(self, name: str) -> CelType | None:
        """The kind of a field; None where there is no such field."""
        if self.name == "map":
            return self.items or DYN
        if self.name == "authorizer":
            return CelType("resource_check") if name == "requestResource" else None
        if self.name != "object":
            return DYN
        if self.fields is not None and name in self.fields:
            return self.fields[name]
        properties = (self.published or {}).get("properties") or {}
        return kind_of(properties[name]) if name in properties else None

    def shown(self) -> str:
        if self.name == "list":
            return f"list({(self.items or DYN).shown()})"
        if self.name == "map":
            return f"map(string, {(self.items or DYN).shown()})"
        return self.name


DYN = CelType("dyn")
BOOL, INT, UINT, DOUBLE = CelType("bool"), CelType("int"), CelType("uint"), CelType("double")
STRING, BYTES, NULL = CelType("string"), CelType("bytes"), CelType("null_type")
_SCALARS = {"boolean": BOOL, "integer": INT, "number": DOUBLE}
_METADATA = CelType("object")
_METADATA.fields = {"name": STRING, "generateName": STRING}
_TIMES = {"date": "timestamp", "date-time": "timestamp", "duration": "duration"}


def kind_of(published: Published) -> CelType:
    """The kind of what a schema describes."""
    if published.get("x-kubernetes-int-or-string"):
        return DYN
    if published.get("nullable"):
        return DYN if published.get("type") not in ("object", "array") else _structured(published)
    written = published.get("type")
    if written == "string":
        return _text(published)
    if written in _SCALARS:
        return _SCALARS[written]
    return _structured(published)


def _text(published: Published) -> CelType:
    asked = published.get("format", "")
    if asked == "byte":
        return CelType("bytes", most=published.get("maxLength", UNBOUNDED))
    if asked in _TIMES:
        return CelType(_TIMES[asked])
    allowed = published.get("enum")
    longest = max((len(str(one)) for one in allowed), default=0) if allowed else UNBOUNDED
    return CelType("string", most=published.get("maxLength", longest))


def _structured(published: Published) -> CelType:
    written = published.get("type")
    if written == "array":
        items = kind_of(published["items"]) if isinstance(published.get("items"), Mapping) else DYN
        return CelType("list", items, published.get("maxItems", UNBOUNDED // least_bytes(published.get("items"))))
    if written != "object":
        return DYN
    values = published.get("additionalProperties")
    if isinstance(values, Mapping):
        return CelType("map", kind_of(values), published.get("maxProperties", UNBOUNDED // (least_bytes(values) + 6)))
    if published.get("x-kubernetes-embedded-resource"):
        return object_kind(published)
    if published.get("x-kubernetes-preserve-unknown-fields") and not published.get("properties"):
        return DYN
    made = CelType("object")
    made.published = published
    return made


def object_kind(published: Published) -> CelType:
    """A whole object: of its metadata only the name is there for rules."""
    made = CelType("object")
    made.published = published
    made.fields = {"apiVersion": STRING, "kind": STRING, "metadata": _METADATA}
    return made


def least_bytes(published: Any) -> int:
    """How short a value can be written in JSON, with the comma behind it."""
    if not isinstance(published, Mapping):
        return 2
    match published.get("type"):
        case "object":
            properties = published.get("properties") or {}
            return 3 + sum(
                len(name) + 3 + least_bytes(properties.get(name)) for name in published.get("required") or ()
            )
        case "string":
            return 3 + int(published.get("minLength", 0))
        case "boolean":
            return 5
        case "array":
            return 3
        case _:
            return 2
