"""Shapes compiled to closures that check and tidy a value in place.

A walker answers the paths of unknown fields (`.spec.replicaz`, `[0].imagee`), or None when there are none, which is
nearly always: no path is built while all is well. Types are compared by identity, for JSON has no subclasses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from shoal.embedded.apiserver.schema import go_values
from shoal.embedded.apiserver.schema.go_values import UndecodableError, bad_number, mismatch
from shoal.embedded.apiserver.schema.kubernetes import GoSchema, Walker
from shoal.embedded.apiserver.schema.node import Schema

Obj = dict[str, Any]
Reader = Callable[[Any], Any]


class ValueRule(NamedTuple):
    """How one value is read. Exactly one of `walk` and `read` is set, or neither."""

    expected: type | None
    """The Python type that needs no more than `walk`; None: always `read`."""
    walk: Walker | None
    read: Reader | None
    """Answers the value to keep in place of the one sent."""
    drops: bool
    go_type: str
    empty: Any
    """What Go has where null was sent in a list or map; for a struct, a new one."""


def walker(schema: GoSchema) -> Walker:
    """The closure of a shape; made once and kept with it."""
    if schema.walker is None:
        schema.walker = _compile(schema)
    return schema.walker


def _compile(schema: GoSchema) -> Walker:
    if schema.properties or (schema.type == "object" and schema.values is None and not schema.keeps_unknown):
        return _Struct(schema).walk
    if schema.type == "array" and schema.items is not None:
        return _list_walker(_rule(schema.items))
    if schema.type == "object" and schema.values is not None:
        return _map_walker(_rule(schema.values))
    return _nothing


def _nothing(value: Any) -> None:
    """Free-form JSON and scalars: there is nothing below."""


def _rule(schema: Schema, drops: bool = False) -> ValueRule:
    if not isinstance(schema, GoSchema):
        raise TypeError(f"{schema.name or schema.type} is not of a built-in kind")
    name = schema.name
    if schema.is_quantity:
        return ValueRule(None, None, go_values.quantity, drops, name, "0")
    if schema.is_int_or_string:
        return ValueRule(None, None, go_values.int_or_string, drops, name, 0)
    if schema.is_time:
        reader = go_values.micro_time if name == "v1.MicroTime" else go_values.time
        return ValueRule(None, None, reader, drops, name, None)
    if schema.type == "string":
        return ValueRule(str, _bytes_walker if schema.number_format == "byte" else None, None, drops, name, "")
    if schema.type == "boolean":
        return ValueRule(bool, None, None, drops, name, False)
    if schema.type == "integer":
        return ValueRule(int, _int_walker(schema), None, drops, name, 0)
    if schema.type == "number":
        return ValueRule(None, None, _float, drops, name, 0)
    if schema.type == "array":
        return ValueRule(list, walker(schema), None, drops, name, None)
    if schema.keeps_unknown and not schema.properties and schema.values is None:
        return ValueRule(None, None, _as_sent, drops, name, None)
    return ValueRule(dict, walker(schema), None, drops, name, {})


def _as_sent(value: Any) -> Any:
    return value


def _float(value: Any) -> Any:
    if value.__class__ is float or value.__class__ is int:
        return value
    raise mismatch(value, "float64")


def _bytes_walker(value: str) -> None:
    if value:
        go_values.base64_text(value)


def _int_walker(schema: GoSchema) -> Walker:
    least, most = (-(2**31), 2**31 - 1) if schema.number_format == "int32" else (-(2**63), 2**63 - 1)

    def in_range(value: int) -> None:
        if not least <= value <= most:
            raise bad_number(value, schema.name)

    return in_range


def _read(rule: ValueRule, value: Any) -> Any:
    """The value to keep of one that is not simply of the expected type; None where null was sent."""
    if value is None:
        return None
    if rule.read is not None:
        return rule.read(value)
    if rule.expected is int and value.__class__ is float:
        raise bad_number(value, rule.go_type)
    raise mismatch(value, rule.go_type)


def _list_walker(rule: ValueRule) -> Walker:
    expected, walk = rule.expected, rule.walk

    def walk_list(items: list[Any]) -> list[str] | None:
        problems: list[str] = []
        for index, item in enumerate(items):
            if item.__class__ is expected:
                if walk is not None and (found := walk(item)):
                    problems += [f"[{index}]{path}" for path in found]
            else:
                items[index] = _item(rule, item)
        return problems or None

    return walk_list


def _map_walker(rule: ValueRule) -> Walker:
    expected, walk = rule.expected, rule.walk

    def walk_map(values: Obj) -> list[str] | None:
        problems: list[str] = []
        for key, value in values.items():
            if value.__class__ is expected:
                if walk is not None and (found := walk(value)):
                    problems += [f".{key}{path}" for path in found]
            else:
                values[key] = _item(rule, value)
        return problems or None

    return walk_map


def _item(rule: ValueRule, value: Any) -> Any:
    kept = _read(rule, value)
    if kept is not None:
        return kept
    return {} if rule.empty == {} else rule.empty


class _Struct:
    """The walker of one Go struct. Its table is made when it first runs, since shapes lead back to themselves."""

    __slots__ = ("_name", "_schema", "_table")

    def __init__(self, schema: GoSchema) -> None:
        self._name = schema.name.rpartition(".")[2]
        self._schema = schema
        self._table: dict[str, tuple[type | None, Walker | None, bool, ValueRule]] | None = None

    def _compiled(self) -> dict[str, tuple[type | None, Walker | None, bool, ValueRule]]:
        zeros, table = self._schema.zeros, {}
        for key, field in self._schema.properties.items():
            rule = _rule(field, zeros.get(key) == "drop")
            table[key] = (rule.expected, rule.walk, rule.drops, rule)
        return table

    def walk(self, obj: Obj) -> list[str] | None:
        table = self._table
        if table is None:
            table = self._table = self._compiled()
        problems: list[str] = []
        gone: list[str] = []
        key = ""
        try:
            for key, value in obj.items():
                entry = table.get(key)
                if entry is None:
                    problems.append(f".{key}")
                    gone.append(key)
                    continue
                expected, walk, drops, rule = entry
                if value.__class__ is expected:
                    if walk is not None and (found := walk(value)):
                        problems += [f".{key}{path}" for path in found]
                else:
                    value = _read(rule, value)  # noqa: PLW2901 - what is kept in its place
                    if value is None:
                        gone.append(key)
                        continue
                    obj[key] = value
                if drops and not value:
                    gone.append(key)
        except UndecodableError as error:
            error.struct = error.struct or self._name
            error.path.append(key)
            raise
        for key in gone:
            del obj[key]
        return problems or None
