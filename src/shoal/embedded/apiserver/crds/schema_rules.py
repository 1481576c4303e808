"""Checks extensions and validation rules of a definition's schema.

Rules are compiled here, so that a definition with one that means nothing is refused with the compiler's words, and one
that could take too long with the factor by which it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.embedded.apiserver.cel.faults import CelFault
from shoal.embedded.apiserver.cel.kinds import UNBOUNDED, least_bytes
from shoal.embedded.apiserver.crds.rule_text import RuleText, compiled_message, compiled_rule, names_a_field, rules_of
from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_allowed, not_supported, required

Published = Mapping[str, Any]
EXPRESSION_LIMIT = 10_000_000
SCHEMA_LIMIT = 100_000_000
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_LIST_TYPE, _MAP_TYPE, _KEYS = "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-list-map-keys"


class SchemaPosition(msgspec.Struct, frozen=True):
    """The position of a part in the schema, and what that means for it."""

    path: str
    is_root: bool = False
    cardinality: int | None = 1
    """How often a rule of this part may run over one object; None where nothing bounds it."""
    unrelated: str = ""
    """The part within which old and new values cannot be brought together."""
    forbids_defaults: str = ""

    def below(self, step: str, **changes: Any) -> SchemaPosition:
        return msgspec.structs.replace(self, path=f"{self.path}{step}", is_root=False, **changes)


class SchemaRules:
    """One schema being checked; the cost of all its rules is added up."""

    def __init__(self, *, compiles: bool) -> None:
        self._compiles = compiles
        self._costs: list[tuple[int, str]] = []
        self._expression_faults: list[FieldError] = []

    def errors(self, published: Published, path: str) -> list[FieldError]:
        faults = [*self._visit(published, SchemaPosition(path, is_root=True)), *self._expression_faults]
        total = sum(cost for cost, _ in self._costs)
        if total > SCHEMA_LIMIT:
            words = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            faults += [not_allowed(where, words) for _, where in sorted(self._costs, reverse=True)[:4]]
            name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
            faults.append(not_allowed(path, _too_costly(name, total, SCHEMA_LIMIT)))
        return faults

    def _visit(self, published: Published, place: SchemaPosition) -> list[FieldError]:
        faults = _plain_errors(published, place)
        faults += self._visit_children(published, place)
        for key in ("allOf", "anyOf", "oneOf"):
            for index, one in enumerate(published.get(key) or ()):
                faults += _plain_errors(one, place.below(f".{key}[{index}]"))
        faults += _extension_errors(published, place.path)
        faults += _rule_errors(published, place.path)
        if self._compiles and not faults:
            for index, rule in enumerate(rules_of(published)):
                self._compile(rule, published, place, f"{place.path}.x-kubernetes-validations[{index}]")
        return faults

    def _visit_children(self, published: Published, place: SchemaPosition) -> list[FieldError]:
        faults = []
        others = published.get("additionalProperties")
        if isinstance(others, dict):
            card = _times(place.cardinality, published.get("maxProperties"))
            faults += self._visit(others, place.below(".additionalProperties", cardinality=card))
        unrelated = place.unrelated or (place.path if published.get(_MAP_TYPE) == "atomic" else "")
        for name, shape in sorted((published.get("properties") or {}).items()):
            forbids = place.forbids_defaults
            if place.is_root and name in ("metadata", "kind", "apiVersion"):
                forbids = f"in top-level {name}"
            step = f".properties[{name}]"
            faults += self._visit(shape, place.below(step, unrelated=unrelated, forbids_defaults=forbids))
        items = published.get("items")
        if isinstance(items, dict):
            unrelated = place.unrelated or ("" if published.get(_LIST_TYPE) == "map" else place.path)
            card = _times(place.cardinality, published.get("maxItems"))
            faults += self._visit(items, place.below(".items", unrelated=unrelated, cardinality=card))
        return faults

    def _compile(self, rule: RuleText, published: Published, place: SchemaPosition, path: str) -> None:
        faults = self._expression_faults
        often = place.cardinality if place.cardinality is not None else UNBOUNDED // least_bytes(published)
        try:
            program = compiled_rule(rule, published, is_root=place.is_root)
        except CelFault as fault:
            words = str(fault) if str(fault).startswith("cel expression") else f"compilation failed: {fault}"
            faults.append(bad_value(f"{path}.rule", rule.as_go(), words))
        else:
            self._count(program.cost * often, f"{path}.rule", "estimated rule cost")
            if "oldSelf" in program.names:
                if place.unrelated:
                    words = (
                        f"oldSelf cannot be used on the uncorrelatable portion of the schema within {place.unrelated}"
                    )
                    faults.append(bad_value(f"{path}.rule", rule.rule, words))
            elif rule.optional_old_self is not None:
                words = "may not be set if oldSelf is not used in rule"
                faults.append(bad_value(f"{path}.optionalOldSelf", rule.optional_old_self, words))
        if rule.message_expression.strip():
            try:
                message = compiled_message(rule, published, is_root=place.is_root)
            except CelFault as fault:
                not_text = str(fault).startswith("cel expression")
                words = "must evaluate to a string" if not_text else f"compilation failed: {fault}"
                faults.append(bad_value(f"{path}.messageExpression", rule.as_go(), f"messageExpression {words}"))
            else:
                self._count(message.cost * often, f"{path}.messageExpression", "estimated messageExpression cost")

    def _count(self, cost: int, path: str, name: str) -> None:
        self._costs.append((cost, path))
        if cost > EXPRESSION_LIMIT:
            self._expression_faults.append(not_allowed(path, _too_costly(name, cost, EXPRESSION_LIMIT)))


def _times(cardinality: int | None, most: int | None) -> int | None:
    return None if cardinality is None or most is None else cardinality * most


def _too_costly(name: str, cost: int, limit: int) -> str:
    ratio = cost / limit
    factor = "more than 100x" if ratio > 100 else f"{ratio:f}x" if ratio < 1.5 else f"{ratio:.1f}x"
    return (
        f"{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, "
        "and maxLength where arrays, maps, and strings are declared)"
    )


def _plain_errors(published: Published, place: SchemaPosition) -> list[FieldError]:
    path, faults = place.path, []
    kind = published.get("type", "")
    if kind == "null":
        faults.append(not_supported(f"{path}.type", kind, _TYPES))
        faults.append(not_allowed(f"{path}.type", "type cannot be set to null, use nullable as an alternative"))
    elif kind and kind not in _TYPES:
        faults.append(not_supported(f"{path}.type", kind, _TYPES))
    if published.get("default") is not None and place.forbids_defaults:
        faults.append(not_allowed(f"{path}.default", f"must not be set {place.forbids_defaults}"))
    faults += [not_allowed(f"{path}.{key}", f"{key} is not supported") for key in _UNSUPPORTED if published.get(key)]
    if isinstance(published.get("items"), list):
        faults.append(not_allowed(f"{path}.items", "items must be a schema object and not an array"))
    if published.get("uniqueItems"):
        words = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        faults.append(not_allowed(f"{path}.uniqueItems", words))
    others = published.get("additionalProperties")
    if others is not None and others is not True and published.get("properties"):
        words = "additionalProperties and properties are mutual exclusive"
        faults.append(not_allowed(f"{path}.additionalProperties", words))
    if published.get("x-kubernetes-preserve-unknown-fields") is False:
        faults.append(bad_value(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined"))
    return faults


def _extension_errors(published: Published, path: str) -> list[FieldError]:
    faults = []
    for key, wanted, allowed in (
        (_MAP_TYPE, "object", ("atomic", "granular")),
        (_LIST_TYPE, "array", ("atomic", "set", "map")),
    ):
        held = published.get(key)
        if held is None:
            continue
        kind = published.get("type", "")
        if kind != wanted:
            words = f"must be {wanted} if {key} is specified"
            faults.append(bad_value(f"{path}.type", kind, words) if kind else required(f"{path}.type", words))
        if held not in allowed:
            faults.append(not_supported(f"{path}.{key}", held, allowed))
    items = published.get("items")
    if published.get(_LIST_TYPE) == "set" and isinstance(items, dict):
        faults += _set_errors(items, path)
    keys, list_type = published.get(_KEYS) or [], published.get(_LIST_TYPE)
    if keys and list_type != "map":
        words = f"must be map if {_KEYS} is non-empty"
        where = f"{path}.{_LIST_TYPE}"
        faults.append(required(where, words) if list_type is None else bad_value(where, list_type, words))
    if list_type == "map":
        faults += _map_errors(published, keys, path)
    if list_type in ("set", "map") and isinstance(items, dict) and items.get("nullable"):
        faults.append(not_allowed(f"{path}.items.nullable", f"cannot be nullable when {_LIST_TYPE} is {list_type}"))
    return faults


def _set_errors(items: Published, path: str) -> list[FieldError]:
    words = f"must be atomic as item of a list with {_LIST_TYPE}=set"
    if items.get("type") == "array" and items.get(_LIST_TYPE, "atomic") != "atomic":
        return [bad_value(f"{path}.items.{_LIST_TYPE}", items[_LIST_TYPE], words)]
    if items.get("type") == "object" and items.get(_MAP_TYPE) != "atomic":
        return [bad_value(f"{path}.items.{_MAP_TYPE}", items.get(_MAP_TYPE), words)]
    return []


def _map_errors(published: Published, keys: list[str], path: str) -> list[FieldError]:
    faults = []
    if not keys:
        faults.append(required(f"{path}.{_KEYS}", f"must not be empty if {_LIST_TYPE} is map"))
    items = published.get("items")
    if not isinstance(items, dict):
        return [*faults, required(f"{path}.items", f"must have a schema if {_LIST_TYPE} is map")]
    if items.get("type") != "object":
        words = f"must be object if parent array's {_LIST_TYPE} is map"
        return [*faults, bad_value(f"{path}.items.type", items.get("type", ""), words)]
    properties = items.get("properties") or {}
    for place, key in enumerate(keys):
        shape = properties.get(key)
        where = f"{path}.items.properties[{key}]"
        if shape is None:
            faults.append(bad_value(f"{path}.{_KEYS}", keys, "entries must all be names of item properties"))
        elif shape.get("type") in ("array", "object"):
            words = f"must be a scalar type if parent array's {_LIST_TYPE} is map"
            faults.append(bad_value(f"{where}.type", items["type"], words))
        if key in keys[:place]:
            faults.append(bad_value(f"{path}.{_KEYS}", keys, "must not contain duplicate entries"))
        if shape is None:
            continue
        if key not in (items.get("required") or ()) and shape.get("default") is None:
            words = f"this property is in {_KEYS}, so it must have a default or be a required property"
            faults.append(required(f"{where}.default", words))
        if shape.get("nullable"):
            faults.append(not_allowed(f"{where}.nullable", f"this property is in {_KEYS}, so it cannot be nullable"))
    return faults


def _rule_errors(published: Published, path: str) -> list[FieldError]:
    """What is wrong with rules before they are compiled."""
    faults: list[FieldError] = []
    for index, rule in enumerate(rules_of(published)):
        where = f"{path}.x-kubernetes-validations[{index}]"
        message = rule.message.strip()
        if not rule.rule.strip():
            faults.append(required(f"{where}.rule", "rule is not specified"))
        elif rule.message and not message:
            faults.append(bad_value(f"{where}.message", rule.message, "must be non-empty if specified"))
        elif "\n" in message:
            faults.append(bad_value(f"{where}.message", rule.message, "must not contain line breaks"))
        elif "\n" in rule.rule.strip() and not message:
            faults.append(required(f"{where}.message", "message must be specified if rule contains line breaks"))
        if rule.message_expression and not rule.message_expression.strip():
            words = "messageExpression must be non-empty if specified"
            faults.append(required(f"{where}.messageExpression", words))
        if rule.reason and rule.reason not in _REASONS:
            faults.append(not_supported(f"{where}.reason", rule.reason, _REASONS))
        if rule.field_path and not names_a_field(rule.field_path, published):
            faults.append(bad_value(f"{where}.fieldPath", rule.field_path, "must be a valid path"))
    return faults
