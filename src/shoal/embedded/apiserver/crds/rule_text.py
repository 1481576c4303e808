"""One rule of a schema as it is written, and as the program it means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.embedded.apiserver.cel.kinds import CelType, kind_of, object_kind
from shoal.embedded.apiserver.cel.program import CelProgram, compile_expression

Published = Mapping[str, Any]


class RuleText(msgspec.Struct, frozen=True):
    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool | None = None

    @property
    def shown(self) -> str:
        """How failures name the rule."""
        return self.message.strip() or self.rule.strip()

    def as_go(self) -> dict[str, Any]:
        """The rule as an error shows it, with the names of the server's own type."""
        return {
            "Rule": self.rule,
            "Message": self.message,
            "MessageExpression": self.message_expression,
            "Reason": self.reason or None,
            "FieldPath": self.field_path,
            "OptionalOldSelf": self.optional_old_self,
        }


def rules_of(published: Published) -> list[RuleText]:
    return [
        RuleText(
            rule=one.get("rule", ""),
            message=one.get("message", ""),
            message_expression=one.get("messageExpression", ""),
            reason=one.get("reason", ""),
            field_path=one.get("fieldPath", ""),
            optional_old_self=one.get("optionalOldSelf"),
        )
        for one in published.get("x-kubernetes-validations") or ()
    ]


def _variables(published: Published, *, is_root: bool, optional_old: bool) -> dict[str, str | CelType]:
    itself = object_kind(published) if is_root else kind_of(published)
    return {"self": itself, "oldSelf": CelType("optional_type", itself) if optional_old else itself}


def compiled_rule(rule: RuleText, published: Published, *, is_root: bool) -> CelProgram:
    """The program of a rule; a CelFault where it has none."""
    return compile_expression(
        rule.rule, _variables(published, is_root=is_root, optional_old=bool(rule.optional_old_self))
    )


def compiled_message(rule: RuleText, published: Published, *, is_root: bool) -> CelProgram:
    variables = _variables(published, is_root=is_root, optional_old=bool(rule.optional_old_self))
    return compile_expression(rule.message_expression, variables, "string")


def field_of(rule: RuleText) -> str:
    """The path of the error, below the rule's own place: `.spec.replicas`, `['a key']`."""
    text = rule.field_path.strip().removeprefix(".")
    return re.sub(r"\.?\['((?:[^'\\]|\\.)*)'\]", lambda found: _step(found[1]), text)


def _step(name: str) -> str:
    return f".{name}" if re.fullmatch(r"\w+", name) else f"[{name}]"


def names_a_field(path: str, published: Published) -> bool:
    """Whether a fieldPath leads to a field of the schema; lists cannot be entered."""
    steps = re.findall(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]", path.strip())
    if not steps or "".join(f".{plain}" if plain else f"['{quoted}']" for plain, quoted in steps) != path.strip():
        return False
    at: Any = published
    for plain, quoted in steps:
        properties = at.get("properties") or {}
        values = at.get("additionalProperties")
        at = properties.get(plain or quoted, values if not properties else None)
        if not isinstance(at, dict):
            return False
    return True
