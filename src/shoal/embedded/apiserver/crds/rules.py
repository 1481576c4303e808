"""The rules in CEL (`x-kubernetes-validations`) of one schema, over objects whose shape is already right.

A rule that mentions `oldSelf` is about the change and runs only where there is an old value at the same place, unless
it says that it may be absent (`optionalOldSelf`). Any other rule is not held against what did not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.embedded.apiserver.cel import CelFault, CelProgram
from shoal.embedded.apiserver.cel.faults import OutOfBudget
from shoal.embedded.apiserver.cel.program import BUDGET, PER_CALL_LIMIT
from shoal.embedded.apiserver.cel.values import NONE, Optional
from shoal.embedded.apiserver.crds.rule_text import RuleText, compiled_message, compiled_rule, field_of, rules_of
from shoal.embedded.apiserver.crds.values import NOWHERE, item_keys, same
from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_allowed, required

Published = Mapping[str, Any]
_LONGEST_MESSAGE = 5 * 1024
_SPENT = "validation failed due to running out of cost budget, no further validation rules will be run"
_TOO_LONG = "no further validation rules will be run due to call cost exceeds limit for rule"


class _Compiled(msgspec.Struct, frozen=True):
    rule: RuleText
    program: CelProgram
    message: CelProgram | None
    field: str

    @property
    def is_transition(self) -> bool:
        return "oldSelf" in self.program.names


class SchemaRules:
    """All rules of a schema, compiled when they are first needed."""

    def __init__(self, published: Published) -> None:
        self._published = published
        self._compiled: dict[int, tuple[_Compiled, ...]] = {}

    def errors(self, new: Any, old: Any | None) -> list[FieldError]:
        run = _Run(self)
        run.visit(new, old, self._published, "", is_same=False)
        return run.faults

    def of(self, published: Published, *, is_root: bool) -> tuple[_Compiled, ...]:
        found = self._compiled.get(id(published))
        if found is None:
            found = tuple(_compile(rule, published, is_root) for rule in rules_of(published))
            self._compiled[id(published)] = found
        return found


def _compile(rule: RuleText, published: Published, is_root: bool) -> _Compiled:
    program = compiled_rule(rule, published, is_root=is_root)
    message = compiled_message(rule, published, is_root=is_root) if rule.message_expression else None
    return _Compiled(rule, program, message, field_of(rule))


class _Run:
    """One validation, with what is left of its budget."""

    def __init__(self, rules: SchemaRules) -> None:
        self._rules = rules
        self._left = BUDGET
        self.faults: list[FieldError] = []

    def visit(self, new: Any, old: Any | None, published: Published, path: str, *, is_same: bool) -> None:
        if new is None or self._left < 0:
            return
        is_same = same(new, old) if old is not None else is_same
        for one in self._rules.of(published, is_root=not path):
            if self._left < 0:
                return
            self._check(one, new, old, path, is_same=is_same)
        for part in published.get("allOf") or ():
            self.visit(new, old, part, path, is_same=False)
        if isinstance(new, list):
            self._visit_items(new, old, published, path, is_same=is_same)
        elif isinstance(new, dict):
            self._visit_fields(new, old, published, path, is_same=is_same)

    def _visit_items(self, new: list[Any], old: Any, published: Published, path: str, *, is_same: bool) -> None:
        items = published.get("items")
        if not isinstance(items, dict):
            return
        before: dict[Any, Any] = {}
        if published.get("x-kubernetes-list-type") == "map" and isinstance(old, list):
            before = {keys: one for one in old if (keys := item_keys(one, published)) is not None}
        for index, one in enumerate(new):
            was = before.get(item_keys(one, published)) if before else None
            self.visit(one, was, items, f"{path}[{index}]", is_same=is_same)

    def _visit_fields(self, new: dict[str, Any], old: Any, published: Published, path: str, *, is_same: bool) -> None:
        properties: Mapping[str, Published] = published.get("properties") or {}
        others = published.get("additionalProperties")
        before = old if isinstance(old, dict) and published.get("x-kubernetes-map-type") != "atomic" else {}
        for name, value in new.items():
            shape = properties.get(name)
            below = f"{path}.{name}" if path else name
            if shape is None:
                if not isinstance(others, dict):
                    continue
                shape, below = others, f"{path}[{name}]"
            self.visit(value, before.get(name), shape, below, is_same=is_same)

    def _check(self, one: _Compiled, new: Any, old: Any | None, path: str, *, is_same: bool) -> None:
        rule = one.rule
        if one.is_transition and old is None and not rule.optional_old_self:
            return
        bindings: dict[str, Any] = {"self": new}
        if rule.optional_old_self:
            bindings["oldSelf"] = NONE if old is None else Optional(old)
        elif old is not None:
            bindings["oldSelf"] = old
        try:
            value, steps = one.program.measured(bindings, min(PER_CALL_LIMIT, self._left))
            self._left -= steps
        except OutOfBudget as fault:
            is_last = self._left < PER_CALL_LIMIT
            self._left = -1
            words = _SPENT if is_last else f"'{fault}': {_TOO_LONG}: {rule.shown}"
            self.faults.append(bad_value(path or NOWHERE, _type_of(new), words))
            return
        except CelFault as fault:
            self.faults.append(bad_value(path or NOWHERE, _type_of(new), _failure(str(fault), rule)))
            return
        if value is True or (is_same and not one.is_transition):
            return
        where = (
            (f"{path}.{one.field}" if path and not one.field.startswith("[") else path + one.field)
            if one.field
            else path
        )
        self.faults.append(_broken(rule, where or NOWHERE, new, self._message(one, bindings)))

    def _message(self, one: _Compiled, bindings: dict[str, Any]) -> str:
        """What the rule says when it is broken; its expression where that comes to a line of text."""
        if one.message is not None:
            try:
                text, steps = one.message.measured(bindings, min(PER_CALL_LIMIT, self._left))
                self._left -= steps
            except CelFault:
                text = ""
            if isinstance(text, str) and text.strip() and "\n" not in text.strip() and len(text) <= _LONGEST_MESSAGE:
                return text.strip()
        return one.rule.message.strip() or f"failed rule: {one.rule.rule.strip()}"


def _failure(words: str, rule: RuleText) -> str:
    if words.startswith("no such overload"):
        unmatched = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{words}': {unmatched}: {rule.shown}"
    return f"{words} evaluating rule: {rule.shown}"


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    kinds: tuple[tuple[type, str], ...] = ((dict, "object"), (list, "array"), (str, "string"), (int, "integer"))
    return next((word for kind, word in kinds if isinstance(value, kind)), "number")


def _broken(rule: RuleText, path: str, value: Any, words: str) -> FieldError:
    shown = msgspec.UNSET if isinstance(value, dict | list) else value
    match rule.reason:
        case "FieldValueForbidden":
            return not_allowed(path, words)
        case "FieldValueRequired":
            return required(path, words)
        case "FieldValueDuplicate":
            return FieldError("FieldValueDuplicate", "Duplicate value", path, shown)
    return bad_value(path, shown, words)
