"""Checks that the schema of a definition is structural.

A structural schema says the type of every field outside of allOf, anyOf, oneOf and not; those contain only conditions
on values. That is what makes pruning and defaults possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from shoal.embedded.apiserver.crds.defaults import fill_defaults
from shoal.embedded.apiserver.crds.pruning import unknown_fields
from shoal.embedded.apiserver.crds.structural import node_of
from shoal.embedded.apiserver.crds.values import NOWHERE, value_errors
from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_allowed, required
from shoal.units.linear_patterns import PatternError, compile_linear

Published = Mapping[str, Any]
_JUNCTORS = ("anyOf", "allOf", "oneOf")
_EMPTY, _FALSE, _UNDEFINED = "must be empty", "must be false", "must be undefined"
_NOT_IN_CONDITIONS = (
    ("type", _EMPTY),
    ("additionalProperties", _UNDEFINED),
    ("default", _UNDEFINED),
    ("title", _EMPTY),
    ("description", _EMPTY),
    ("nullable", _FALSE),
    ("externalDocs", _UNDEFINED),
    ("x-kubernetes-preserve-unknown-fields", _FALSE),
    ("x-kubernetes-embedded-resource", _FALSE),
    ("x-kubernetes-int-or-string", _FALSE),
    ("x-kubernetes-list-map-keys", _EMPTY),
    ("x-kubernetes-list-type", _UNDEFINED),
    ("x-kubernetes-map-type", _UNDEFINED),
    ("x-kubernetes-validations", _EMPTY),
)
_INT_OR_STRING_CHOICE = [{"type": "integer"}, {"type": "string"}]
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"


def children(published: Published, path: str) -> Iterator[tuple[str, Published]]:
    """The schemas right below one, outside of conditions, with their paths."""
    for name, shape in (published.get("properties") or {}).items():
        yield f"{path}.properties[{name}]", shape
    if isinstance(published.get("additionalProperties"), dict):
        yield f"{path}.additionalProperties", published["additionalProperties"]
    if isinstance(published.get("items"), dict):
        yield f"{path}.items", published["items"]


def structure_errors(published: Published, path: str) -> list[FieldError]:
    """What keeps a schema from being structural, in the order of the messages."""
    return sorted([*_errors(published, path, "root"), *_missing(published, path)], key=FieldError.text)


def _errors(published: Published, path: str, level: str) -> list[FieldError]:
    faults = _type_errors(published, path, level)
    others = published.get("additionalProperties")
    if others is not None and level == "root":
        faults.append(not_allowed(f"{path}.additionalProperties", "must not be used at the root"))
    if published.get(_EMBEDDED):
        if others is not None:
            faults.append(not_allowed(f"{path}.additionalProperties", f"must not be used if {_EMBEDDED} is set"))
        if not published.get(_PRESERVE) and not published.get("properties"):
            words = f"must not be empty if {_EMBEDDED} is true without {_PRESERVE}"
            faults.append(required(f"{path}.properties", words))
    if published.get(_INT_OR_STRING):
        for key in (_PRESERVE, _EMBEDDED):
            if published.get(key):
                faults.append(bad_value(f"{path}.{key}", True, f"must be false if {_INT_OR_STRING} is true"))
    if level == "root" or published.get(_EMBEDDED):
        faults += _metadata_errors(published, path, level)
    faults += _condition_lists(published, path)
    for below, shape in children(published, path):
        faults += _errors(shape, below, "item" if below.endswith(".items") else "field")
    return faults


_EMPTY_TYPE = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}


def _type_errors(published: Published, path: str, level: str) -> list[FieldError]:
    kind = published.get("type", "")
    faults = []
    if published.get(_EMBEDDED) and kind != "object":
        words = f"must be object if {_EMBEDDED} is true"
        faults.append(bad_value(f"{path}.type", kind, words) if kind else required(f"{path}.type", words))
    elif not kind and not published.get(_INT_OR_STRING) and not published.get(_PRESERVE):
        faults.append(required(f"{path}.type", _EMPTY_TYPE[level]))
    if level == "root" and kind and kind != "object":
        faults.append(bad_value(f"{path}.type", kind, "must be object at the root"))
    if kind == "array" and not isinstance(published.get("items"), dict):
        faults.append(required(f"{path}.items", "must be specified"))
    return faults


def _metadata_errors(published: Published, path: str, level: str) -> list[FieldError]:
    """Of an object's metadata a schema may restrict the name, nothing else."""
    properties = published.get("properties") or {}
    faults = [
        bad_value(f"{path}.properties[{key}].type", properties[key].get("type", ""), "must be string")
        for key in ("kind", "apiVersion")
        if key in properties and properties[key].get("type") != "string"
    ]
    metadata = properties.get("metadata")
    if not isinstance(metadata, dict):
        return faults
    where = f"{path}.properties[metadata]"
    if metadata.get("type") != "object":
        faults.append(bad_value(f"{where}.type", metadata.get("type", ""), "must be object"))
    inner = metadata.get("properties") or {}
    if level == "root" and (set(metadata) - {"type", "properties", "default"} or set(inner) - {"name", "generateName"}):
        words = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        faults.append(not_allowed(where, words))
    return faults


def _condition_lists(published: Published, path: str) -> list[FieldError]:
    faults = []
    pattern = published.get("pattern")
    if pattern:
        try:
            compile_linear(pattern)
        except PatternError as error:
            words = f"must be a valid regular expression, but isn't: {error}"
            faults.append(bad_value(f"{path}.pattern", pattern, words))
    for key in _JUNCTORS:
        for index, one in enumerate(published.get(key) or ()):
            if key == "anyOf" and published[key] == _INT_OR_STRING_CHOICE:
                continue
            faults += _condition_errors(one, f"{path}.{key}[{index}]")
    if isinstance(published.get("not"), dict):
        faults += _condition_errors(published["not"], f"{path}.not")
    return faults


def _condition_errors(condition: Published, path: str) -> list[FieldError]:
    """What is not allowed inside allOf, anyOf, oneOf and not."""
    faults = _condition_lists(condition, path)
    for key, words in _NOT_IN_CONDITIONS:
        held = condition.get(key)
        if held not in (None, "", False, []):
            faults.append(not_allowed(f"{path}.{key}", f"{words} to be structural"))
    for name, shape in (condition.get("properties") or {}).items():
        if name == "metadata":
            faults.append(not_allowed(f"{path}.properties[metadata]", "must not be specified in a nested context"))
        faults += _condition_errors(shape, f"{path}.properties[{name}]")
    if isinstance(condition.get("items"), dict):
        faults += _condition_errors(condition["items"], f"{path}.items")
    return faults


def _missing(published: Published, path: str) -> list[FieldError]:
    """Fields that conditions speak of and that the schema itself does not have."""
    faults = []
    for key in _JUNCTORS:
        for index, one in enumerate(published.get(key) or ()):
            faults += _missing_in(one, published, f"{path}.{key}[{index}]", path)
    if isinstance(published.get("not"), dict):
        faults += _missing_in(published["not"], published, f"{path}.not", path)
    for below, shape in children(published, path):
        faults += _missing(shape, below)
    return faults


def _missing_in(condition: Published, around: Published, path: str, base: str) -> list[FieldError]:
    faults = []
    outside = around.get("additionalProperties")
    for name, shape in (condition.get("properties") or {}).items():
        known = (around.get("properties") or {}).get(name)
        if known is not None:
            faults += _missing_in(shape, known, f"{path}.properties[{name}]", f"{base}.properties[{name}]")
        elif isinstance(outside, dict):
            faults += _missing_in(shape, outside, f"{path}.properties[{name}]", f"{base}.additionalProperties")
        else:
            words = f"because it is defined in {path}.properties[{name}]"
            faults.append(required(f"{base}.properties[{name}]", words))
    if isinstance(condition.get("items"), dict):
        if isinstance(around.get("items"), dict):
            faults += _missing_in(condition["items"], around["items"], f"{path}.items", f"{base}.items")
        else:
            faults.append(required(f"{base}.items", f"because it is defined in {path}.items"))
    for key in _JUNCTORS:
        for index, one in enumerate(condition.get(key) or ()):
            faults += _missing_in(one, around, f"{path}.{key}[{index}]", base)
    return faults


def default_errors(published: Published, path: str) -> list[FieldError]:
    """Defaults must be values of their own schema, with nothing that would be pruned."""
    faults = []
    default = published.get("default")
    if "default" in published and default is not None:
        where = f"{path}.default"
        unknown = unknown_fields(default, node_of(published))
        if unknown:
            faults.append(bad_value(where, default, "must not have unknown fields"))
        else:
            filled = _filled(default, published)
            found = value_errors(filled, {**published, "default": None})
            faults += [msgspec.structs.replace(error, field=_under(where, error.field)) for error in found]
    for below, shape in children(published, path):
        faults += default_errors(shape, below)
    return faults


def _under(path: str, field: str) -> str:
    return path if field in ("", NOWHERE) else f"{path}.{field}"


def _filled(value: Any, published: Published) -> Any:
    from copy import deepcopy

    made = deepcopy(value)
    fill_defaults(made, published)
    return made
