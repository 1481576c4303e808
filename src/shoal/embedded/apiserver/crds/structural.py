"""Converts a CustomResourceDefinition's `openAPIV3Schema` to the structure that pruning, defaulting and validation use.

The published schema stays beside each node (`Schema.published`): validation reads numbers, patterns and rules from it.
Definitions are checked before they come here (`structure.py`), so what is odd is read leniently.

Every object has `apiVersion`, `kind` and `metadata`, whatever its definition says of them. Metadata always has the
shape below, which server-side apply also needs (finalizers are a set, owner references are distinguished by uid).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.schema.node import Schema, Type

_TYPES: frozenset[str] = frozenset({"object", "array", "string", "integer", "number", "boolean"})


def _text() -> Schema:
    return Schema("string")


def _time() -> Schema:
    made = Schema("string")
    made.is_time = True
    return made


def _whole() -> Schema:
    made = Schema("integer")
    made.number_format = "int64"
    return made


def _texts() -> Schema:
    made = Schema("object")
    made.values = _text()
    return made


def _list_of(items: Schema) -> Schema:
    made = Schema("array")
    made.items = items
    return made


def _free() -> Schema:
    made = Schema("object")
    made.keeps_unknown = True
    return made


def _owner_references() -> Schema:
    owner = Schema("object")
    owner.map_type = "atomic"
    owner.properties = {key: _text() for key in ("apiVersion", "kind", "name", "uid")}
    owner.properties |= {key: Schema("boolean") for key in ("controller", "blockOwnerDeletion")}
    made = _list_of(owner)
    made.list_type, made.map_keys, made.merge_key = "map", ("uid",), "uid"
    made.patch_strategies = frozenset({"merge"})
    return made


def _managed_fields() -> Schema:
    entry = Schema("object")
    texts = ("manager", "operation", "apiVersion", "fieldsType", "subresource")
    entry.properties = {key: _text() for key in texts} | {"time": _time(), "fieldsV1": _free()}
    return _list_of(entry)


def _finalizers() -> Schema:
    made = _list_of(_text())
    made.list_type = "set"
    made.patch_strategies = frozenset({"merge"})
    return made


def _metadata() -> Schema:
    made = Schema("object", "v1.ObjectMeta")
    texts = ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion")
    made.properties = {key: _text() for key in texts}
    made.properties |= {key: _whole() for key in ("generation", "deletionGracePeriodSeconds")}
    made.properties |= {key: _time() for key in ("creationTimestamp", "deletionTimestamp")}
    made.properties |= {key: _texts() for key in ("labels", "annotations")}
    made.properties["ownerReferences"] = _owner_references()
    made.properties["finalizers"] = _finalizers()
    made.properties["managedFields"] = _managed_fields()
    return made


METADATA = _metadata()


def schema_of(published: Mapping[str, Any]) -> Schema:
    """The shape of a whole custom object."""
    made = node_of(published)
    made.type = "object"
    _add_type_and_metadata(made)
    return made


def _add_type_and_metadata(node: Schema) -> None:
    node.properties = {**node.properties, "apiVersion": _text(), "kind": _text(), "metadata": METADATA}


def node_of(published: Mapping[str, Any]) -> Schema:
    """The shape of any value that a schema describes."""
    kind = published.get("type", "any")
    made = Schema(_kind(kind))
    made.published = published
    made.keeps_unknown = bool(published.get("x-kubernetes-preserve-unknown-fields"))
    made.is_int_or_string = bool(published.get("x-kubernetes-int-or-string"))
    made.number_format = published.get("format", "") if kind in ("integer", "number") else ""
    made.required = tuple(published.get("required") or ())
    made.properties = {name: node_of(shape) for name, shape in (published.get("properties") or {}).items()}
    _set_values(made, published.get("additionalProperties"))
    items = published.get("items")
    if isinstance(items, dict):
        made.items = node_of(items)
    made.list_type = published.get("x-kubernetes-list-type") or "atomic"
    made.map_keys = tuple(published.get("x-kubernetes-list-map-keys") or ())
    made.map_type = published.get("x-kubernetes-map-type") or "granular"
    if published.get("x-kubernetes-embedded-resource"):
        _add_type_and_metadata(made)
    return made


def _set_values(made: Schema, additional: Any) -> None:
    if isinstance(additional, dict):
        made.values = node_of(additional)
    elif additional is True:
        made.keeps_unknown = True


def _kind(written: Any) -> Type:
    return written if written in _TYPES else "any"
