"""Validates a value against a published schema: types, bounds, patterns, enums and combinations.

On updates, what did not change is not held against the writer (ratcheting): a value equal to the old one at the same
place passes whatever the schema says now. Places are the same by property name, and in lists of type map by their keys;
items of other lists cannot be distinguished, so they are checked whenever the list changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.embedded.apiserver.crds.ranges import range_errors
from shoal.embedded.apiserver.field_errors import (
    FieldError,
    bad_value,
    not_supported,
    required,
    too_long,
    too_many,
    wrong_type,
)
from shoal.embedded.apiserver.schema.formats import format_fault
from shoal.units.linear_patterns import PatternError, compile_linear

Published = Mapping[str, Any]
NOWHERE = "<nil>"
"""How Kubernetes writes the path of what has none."""
_ABSENT: Any = object()


def value_errors(value: Any, published: Published, path: str = "", old: Any = _ABSENT) -> list[FieldError]:
    """Everything that is wrong with a value and what it holds."""
    if old is not _ABSENT and same(value, old):
        return []
    if value is None:
        return _null_errors(published, path)
    faults = _type_errors(value, published, path)
    faults += _combined_errors(value, published, path)
    if isinstance(value, str):
        faults += _text_errors(value, published, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        faults += _number_errors(value, published, path)
    elif isinstance(value, list):
        faults += _list_errors(value, published, path, old)
    if published.get("enum"):
        faults += _enum_errors(value, published, path)
    if isinstance(value, dict):
        faults += _object_errors(value, published, path, old)
    return faults


def same(one: Any, other: Any) -> bool:
    """Equality of JSON values; true is not 1."""
    return bool(one == other) and _are_alike(one, other)


def _are_alike(one: Any, other: Any) -> bool:
    """Of what Python finds equal: whether what is true or false in one is so in the other."""
    if isinstance(one, dict):
        return all(_are_alike(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return all(map(_are_alike, one, other))
    return isinstance(one, bool) is isinstance(other, bool)


def item_keys(item: Any, published: Published) -> tuple[Any, ...] | None:
    """What tells an item of a list of type map from the others; a key left out counts with its default."""
    if not isinstance(item, dict):
        return None
    properties = (published.get("items") or {}).get("properties") or {}
    keys = published.get("x-kubernetes-list-map-keys") or ()
    found = tuple(item.get(key, (properties.get(key) or {}).get("default")) for key in keys)
    return None if any(isinstance(one, dict | list) for one in found) else found


# -- types -------------------------------------------------------------------------------------------------------


def _allowed_types(published: Published) -> tuple[str, ...]:
    if published.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    kind = published.get("type")
    return (kind,) if kind else ()


def _null_errors(published: Published, path: str) -> list[FieldError]:
    allowed = _allowed_types(published)
    if not allowed or published.get("nullable"):
        return []
    return [wrong_type(path or NOWHERE, "null", _must_be(path, ",".join(allowed), "null"))]


def _type_errors(value: Any, published: Published, path: str) -> list[FieldError]:
    allowed = _allowed_types(published)
    if not allowed:
        return []
    found, found_format = _type_of(value)
    whole = isinstance(value, float) and value.is_integer() and "integer" in allowed
    if found in allowed or whole or (found == "integer" and "number" in allowed):
        return []
    asked_format = published.get("format", "")
    if asked_format and found not in ("string", "array"):
        return [wrong_type(path or NOWHERE, found_format, _must_be(path, asked_format, found_format))]
    if asked_format and found in ("string", "array") and not {"integer", "number"} & {*allowed}:
        return []
    return [wrong_type(path or NOWHERE, found, _must_be(path, ",".join(allowed), found))]


def _type_of(value: Any) -> tuple[str, str]:
    if isinstance(value, bool):
        return "boolean", ""
    if isinstance(value, int):
        return "integer", "int64"
    if isinstance(value, float):
        return "number", "double"
    return ("string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"), ""


def _must_be(path: str, wanted: str, found: str) -> str:
    return f'{path} in body must be of type {wanted}: "{found}"'


# -- single values -----------------------------------------------------------------------------------------------


def _text_errors(value: str, published: Published, path: str) -> list[FieldError]:
    faults = []
    longest, shortest = published.get("maxLength"), published.get("minLength")
    if longest is not None and len(value) > longest:
        faults.append(too_long(path or NOWHERE, longest))
    if shortest is not None and len(value) < shortest:
        words = f"{path} in body should be at least {shortest} chars long"
        faults.append(bad_value(path or NOWHERE, value, words))
    pattern = published.get("pattern")
    if pattern and not _matches(pattern, value):
        faults.append(bad_value(path or NOWHERE, value, f"{path} in body should match '{pattern}'"))
    asked = published.get("format")
    if asked and format_fault(asked, value):
        faults.append(wrong_type(path or NOWHERE, value, _must_be(path, asked, value)))
    return faults


def _matches(pattern: str, value: str) -> bool:
    """A pattern that cannot be read matches everything: definitions that an earlier release stored may have one."""
    try:
        return compile_linear(pattern).occurs(value)
    except PatternError:
        return True


def _number_errors(value: float, published: Published, path: str) -> list[FieldError]:
    faults = range_errors(value, published, path)
    step = published.get("multipleOf")
    if step and not float(value / step).is_integer():
        words = f"{path} in body should be a multiple of {_number(step, value)}"
        faults.append(bad_value(path or NOWHERE, value, words))
    highest, lowest = published.get("maximum"), published.get("minimum")
    if highest is not None:
        strictly = bool(published.get("exclusiveMaximum"))
        if value > highest or (strictly and value == highest):
            words = "less than" if strictly else "less than or equal to"
            words = f"{path} in body should be {words} {_number(highest, value)}"
            faults.append(bad_value(path or NOWHERE, value, words))
    if lowest is not None:
        strictly = bool(published.get("exclusiveMinimum"))
        if value < lowest or (strictly and value == lowest):
            words = "greater than" if strictly else "greater than or equal to"
            words = f"{path} in body should be {words} {_number(lowest, value)}"
            faults.append(bad_value(path or NOWHERE, value, words))
    return faults


def _number(bound: float, value: float) -> str:
    """A bound as it is shown beside a value: whole beside whole numbers, else the shortest of Go's two forms."""
    if isinstance(value, int):
        return str(int(bound))
    text = f"{bound:.17g}" if float(f"{bound:.6g}") != bound else f"{bound:.6g}"
    return text if float(repr(float(bound))) != float(text) or len(text) <= len(repr(bound)) else repr(bound)


def _enum_errors(value: Any, published: Published, path: str) -> list[FieldError]:
    import msgspec

    allowed = published["enum"]
    if any(same(value, one) for one in allowed):
        return []
    words = [one if isinstance(one, str) else msgspec.json.encode(one).decode() for one in allowed]
    return [not_supported(path or NOWHERE, value, words)]


# -- what holds others -------------------------------------------------------------------------------------------


def _list_errors(value: list[Any], published: Published, path: str, old: Any) -> list[FieldError]:
    faults = []
    items = published.get("items")
    if isinstance(items, dict):
        before = _items_before(published, old)
        for index, item in enumerate(value):
            keys = item_keys(item, published) if before else None
            was = before.get(keys, _ABSENT) if keys is not None else _ABSENT
            faults += value_errors(item, items, f"{path}[{index}]", was)
    fewest, most = published.get("minItems"), published.get("maxItems")
    if fewest is not None and len(value) < fewest:
        words = f"{path} in body should have at least {fewest} items"
        faults.append(bad_value(path or NOWHERE, len(value), words))
    if most is not None and len(value) > most:
        faults.append(too_many(path or NOWHERE, len(value), most))
    return faults


def _items_before(published: Published, old: Any) -> Mapping[Any, Any]:
    if published.get("x-kubernetes-list-type") != "map" or not isinstance(old, list):
        return {}
    return {keys: item for item in old if (keys := item_keys(item, published)) is not None}


def _object_errors(value: dict[str, Any], published: Published, path: str, old: Any) -> list[FieldError]:
    faults = []
    fewest, most = published.get("minProperties"), published.get("maxProperties")
    if fewest is not None and len(value) < fewest:
        words = f"{path} in body should have at least {fewest} properties"
        faults.append(bad_value(path or NOWHERE, len(value), words))
    if most is not None and len(value) > most:
        faults.append(too_many(path or NOWHERE, len(value), most))
    properties: Mapping[str, Published] = published.get("properties") or {}
    others = published.get("additionalProperties")
    before = old if isinstance(old, dict) else {}
    for name, held in value.items():
        shape = properties.get(name, others)
        if isinstance(shape, dict):
            faults += value_errors(held, shape, _below(path, name), before.get(name, _ABSENT))
    faults += [required(_below(path, name)) for name in published.get("required") or () if name not in value]
    return faults


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _combined_errors(value: Any, published: Published, path: str) -> list[FieldError]:
    """Of allOf, anyOf, oneOf and not. The verdict has no path of its own: the message names it."""
    faults: list[FieldError] = []
    if published.get("anyOf"):
        found = [value_errors(value, one, path) for one in published["anyOf"]]
        if all(found):
            faults.append(_verdict(path, "must validate at least one schema (anyOf)"))
            faults += _shortest(found)
    if published.get("oneOf"):
        found = [value_errors(value, one, path) for one in published["oneOf"]]
        faults += _one_of(found, path)
    if published.get("allOf"):
        found = [value_errors(value, one, path) for one in published["allOf"]]
        faults += [fault for each in found for fault in each]
        if any(found):
            none = ". None validated" if all(found) else ""
            faults.append(_verdict(path, f"must validate all the schemas (allOf){none}"))
    if published.get("not") and not value_errors(value, published["not"], path):
        faults.append(_verdict(path, "must not validate the schema (not)"))
    return faults


def _one_of(found: Sequence[list[FieldError]], path: str) -> list[FieldError]:
    valid = sum(1 for each in found if not each)
    if valid == 1:
        return []
    words = "must validate one and only one schema (oneOf). "
    if valid:
        return [_verdict(path, f"{words}Found {valid} valid alternatives")]
    return [_verdict(path, f"{words}Found none valid"), *_shortest(found)]


def _count(faults: list[FieldError]) -> int:
    return len(faults)


def _shortest(found: Sequence[list[FieldError]]) -> list[FieldError]:
    """Of the alternatives, the one that was missed by least."""
    return min(found, key=_count)


def _verdict(path: str, words: str) -> FieldError:
    return bad_value(NOWHERE, "", f'"{path}" {words}')
