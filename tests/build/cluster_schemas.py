"""Shapes of objects: those of built-in kinds, and small custom ones put together by hand.

`custom(a=keyed(["name"], struct(name=text(), value=number())))` is the shape of a custom kind with `spec.a`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from shoal.embedded.apiserver.schema.kubernetes import GoSchema, Shapes
from shoal.embedded.apiserver.schema.node import ANY, Schema


@cache
def _shapes() -> Shapes:
    return Shapes("1.36")


def built_in(api_version: str, kind: str) -> GoSchema:
    group, _, version = api_version.rpartition("/")
    return _shapes().of(group, version, kind)


def text() -> Schema:
    return Schema("string")


def number(*, default: int | None = None) -> Schema:
    made = Schema("integer")
    if default is not None:
        made.published = {"type": "integer", "default": default}
    return made


def struct(*, atomic: bool = False, **properties: Schema) -> Schema:
    made = Schema("object")
    made.properties = properties
    made.map_type = "atomic" if atomic else "granular"
    return made


def map_of(values: Schema) -> Schema:
    made = Schema("object")
    made.values = values
    return made


def plain_list(items: Schema) -> Schema:
    made = Schema("array")
    made.items = items
    return made


def set_of(items: Schema) -> Schema:
    made = plain_list(items)
    made.list_type = "set"
    return made


def keyed(keys: Sequence[str], items: Schema) -> Schema:
    made = plain_list(items)
    made.list_type, made.map_keys = "map", tuple(keys)
    return made


def anything() -> Schema:
    return ANY


def custom(**spec: Schema) -> Schema:
    """The shape of a custom kind with a status that takes anything."""
    metadata = _shapes().definition("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
    inside = struct()
    inside.properties = spec
    return struct(apiVersion=text(), kind=text(), metadata=metadata, spec=inside, status=anything())


def widget(spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    """An object of the custom kind."""
    made: dict[str, Any] = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", **metadata}}
    if spec is not None:
        made["spec"] = spec
    return made
