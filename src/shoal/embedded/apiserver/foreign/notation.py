"""A short way to write the schema of a custom resource, so that the shapes of sixty kinds can be read and checked.

    replicas: int                       a field and its type: string, int, number, bool, time, quantity, int-or-string,
                                        any
    policy: Never|Always                one of these words
    count: int >= 1                     not less than that; of a quantity 0 alone
    policy: Never|Always = Never        what the server fills in where it is left out; `= ""` is an empty string
    names: [string]                     a list
    taints: [{key@: string}]            a list whose items are distinguished by that field (those fields), in applies
    labels: {"*": string}               a map
    template: {metadata: any, ...: any} an object; with `...` other fields are kept too
    name!: string                       required
    preemption: {"=": {}, with: string} an object that is there even where it is left out, with that content

`any` keeps whatever it is given, `object` any object. Rejected: the schemas as published. They are megabytes, most of
it descriptions.
"""

from __future__ import annotations

from typing import Any

import yaml

from shoal.units.errors import UserError, Where

Obj = dict[str, Any]
_QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
_INT_OR_STRING: Obj = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_PLAIN: dict[str, Obj] = {
    "string": {"type": "string"},
    "int": {"type": "integer", "format": "int64"},
    "number": {"type": "number"},
    "bool": {"type": "boolean"},
    "time": {"type": "string", "format": "date-time"},
    "quantity": {**_INT_OR_STRING, "pattern": _QUANTITY},
    "int-or-string": _INT_OR_STRING,
    "any": {"x-kubernetes-preserve-unknown-fields": True},
    "object": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
_REST, _EACH, _DEFAULT = "...", "*", "="
_REQUIRED, _TELLS_APART = "!", "@"


def schema(written: Any, where: Where) -> Obj:
    """The OpenAPI schema of something written so. Raises UserError at the place that cannot be read."""
    if isinstance(written, str):
        return _words(written, where)
    if isinstance(written, list):
        return _list(written, where)
    if isinstance(written, dict):
        return _object(written, where)
    raise UserError(f"{written!r} is not a type", where=where)


def field_name(written: str) -> str:
    return written.rstrip(_REQUIRED + _TELLS_APART)


def is_required(written: str) -> bool:
    return written.endswith((_REQUIRED, _TELLS_APART))


def _words(words: str, where: Where) -> Obj:
    type_, has_default, default = words.partition(" = ")
    type_, has_least, least = type_.partition(" >= ")
    found = _type(type_.strip(), where)
    if has_least:
        found["minimum"] = _value(least, where)
        if found.get("pattern") == _QUANTITY:
            # The least is asked of whole numbers; of those with a unit it is asked that they are not below nothing.
            found["pattern"] = _QUANTITY.replace(r"(\+|-)?", r"\+?", 1)
    if has_default:
        found["default"] = str(default).strip('"') if found.get("type") == "string" else _value(default, where)
    return found


def _type(word: str, where: Where) -> Obj:
    if word in _PLAIN:
        return dict(_PLAIN[word])
    if "|" in word:
        return {"type": "string", "enum": word.split("|")}
    raise UserError(
        f"{word!r} is not a type", where=where, fix=f"one of {', '.join(_PLAIN)}, or words with | between them"
    )


def _value(text: str, where: Where) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise UserError(f"{text!r} is not a value", where=where) from None


def _list(written: list[Any], where: Where) -> Obj:
    if len(written) != 1:
        raise UserError("a list has the type of its items and nothing else", where=where, fix="write [string]")
    item = written[0]
    found: Obj = {"type": "array", "items": schema(item, where.below("[]"))}
    keys = [field_name(name) for name in item if name.endswith(_TELLS_APART)] if isinstance(item, dict) else []
    if keys:
        found |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys}
    return found


def _object(fields: Obj, where: Where) -> Obj:
    if set(fields) == {_EACH}:
        return {"type": "object", "additionalProperties": schema(fields[_EACH], where.below("*"))}
    found: Obj = {"type": "object"}
    if _REST in fields:
        found["x-kubernetes-preserve-unknown-fields"] = True
    if _DEFAULT in fields:
        found["default"] = fields[_DEFAULT]
    named = {name: one for name, one in fields.items() if name not in (_REST, _DEFAULT)}
    if named:
        found["properties"] = {field_name(name): schema(one, where.key(name)) for name, one in named.items()}
    required = [field_name(name) for name in named if is_required(name)]
    if required:
        found["required"] = required
    return found
